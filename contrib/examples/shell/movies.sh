#!/bin/bash
# SPDX-License-Identifier: MIT
# Tools of a cinema: functions tool_NAME, whose $1 is the arguments as JSON. What they print
# is the result; return 1 makes it an error that the model reads.

# One member of a flat object of strings and numbers. Who has jq uses that:
# jq -r '.title // empty' <<<"$1"
member() {
	local pattern="\"$2\"[[:space:]]*:[[:space:]]*(\"([^\"\\\\]*)\"|(-?[0-9]+))"

	[[ $1 =~ $pattern ]] && printf '%s' "${BASH_REMATCH[2]}${BASH_REMATCH[3]}"
}

tool_get_time() {
	date -u +%H:%M
}

tool_get_movies() {
	printf '%s\n' '1 The Gold Rush' '2 Metropolis' '3 Sunrise'
}

tool_book_ticket() {
	local movie count

	movie=$(member "$1" movie)
	count=$(member "$1" count)
	# Before anything is done with a value: what it must be, to its end.
	if ! [[ $movie =~ ^[1-3]$ ]]; then
		echo "Argument 'movie' must be the number of a movie, 1 to 3. Ask get_movies."
		return 1
	fi
	if ! [[ $count =~ ^[1-9]$ ]]; then
		echo "Argument 'count' must be a number from 1 to 9."
		return 1
	fi
	echo "Booked: $count for movie $movie"
}

# Where an SDK ran a server at the end of the file, its call may stay, guarded:
# [[ ${BASH_SOURCE[0]} == "$0" ]] && run_mcp_server
