#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What a server says and what a client behind mcpvisor gets, for the faults that results
# hide best. Prints what contrib/doc/results.md shows.
#
# usage: contrib/doc/results.sh [MCPVISOR]
set -euo pipefail

mcpvisor=$(realpath -e "${1:-$(dirname "$0")/../../build/mcpvisor}")
cd "$(dirname "$0")/results"
folder=$(mktemp -d)
export XDG_STATE_HOME=$folder
"$mcpvisor" serve --conf mcpvisor.conf --socket "$folder/socket" --log-level info 2>"$folder/log" &
daemon=$!

end() {
	kill "$daemon" 2>"$folder/kill" || :
	wait "$daemon" || :
	rm -rf "$folder"
}
trap end EXIT

# run COMMAND ARGUMENT...: of the program, asked of that daemon.
run() {
	local command=$1
	shift
	"$mcpvisor" "$command" --socket "$folder/socket" "$@"
}

# raw TOOL: what the server itself answers.
raw() {
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s"}}\n' "$1" |
		/usr/bin/python3 server.py | sed 's/^{"jsonrpc":"2.0","id":1,"result"://; s/}$//'
}

# show TITLE TOOL: with and without mcpvisor, and what the operator sees.
show() {
	printf '== %s\n' "$1"
	printf '\nfrom the server:\n'
	raw "$2"
	printf '\n$ mcpvisor call --output json issues__%s\n' "$2"
	run call --output json "issues__$2" || printf '(exit status %d)\n' $?
	printf '\nin the log:\n'
	grep " tool=\"issues__$2\"" "$folder/log" |
		sed 's/.* end=/end=/; s/ ms=[0-9]* in=[0-9]*//; s/ trace=-//'
	printf '\n'
}

for _ in $(seq 100); do
	run status >"$folder/status" 2>&1 && break
	sleep 0.1
done

show 'A 403 is read as a result' delete_issue
show 'The same, in words that only its author knows' close_issue
show 'Partial data is thrown away, or taken for whole' search
show 'An identity that is nobody is believed' get_me
printf '$ mcpvisor status (some columns)\n'
run status | awk '
	/^UPSTREAM/ { on = 1; NF-- }
	on { printf "%-8s  %5s  %6s  %6s  %7s  %7s  %5s\n", $1, $(NF-7), $(NF-6), $(NF-5), $(NF-4), $(NF-3), $(NF-2) }'
