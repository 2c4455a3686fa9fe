#!/bin/sh
# SPDX-License-Identifier: MIT
# mcpvisor as a peer of a benchmark that measures aggregating proxies side by side.
#
# Two verbs: "info" prints key=value lines, "run http" and "run stdio" become the program.
# BENCH_SERVERS is an mcpServers file, BENCH_PORT where to listen, BENCH_WORK an empty
# folder. MCPVISOR names the program, MCPVISOR_BENCH_CONF a conf (without it: defaults).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=${MCPVISOR:-$here/../../build/mcpvisor}
conf=${MCPVISOR_BENCH_CONF:-}

case $1 in
info)
	if [ ! -x "$bin" ]; then
		echo "available=no program at $bin (MCPVISOR)"
		exit 0
	fi
	echo "version=$("$bin" version | head -n 1)"
	echo "config=${conf:-defaults}"
	echo "aggregates=yes"
	echo "flavours=legacy,modern"
	echo "stdio=yes"
	;;
run)
	export HOME="$BENCH_WORK" XDG_STATE_HOME="$BENCH_WORK/state"
	export XDG_RUNTIME_DIR="$BENCH_WORK/run"
	mkdir -m 700 "$XDG_RUNTIME_DIR"
	if [ -z "$conf" ]; then
		conf=$BENCH_WORK/empty.conf
		echo '# defaults' >"$conf"
	fi
	case $2 in
	http)
		exec "$bin" serve --conf "$conf" --mcp-json "$BENCH_SERVERS" \
			--listen "127.0.0.1:$BENCH_PORT"
		;;
	stdio)
		exec "$bin" stdio --conf "$conf" --mcp-json "$BENCH_SERVERS"
		;;
	esac
	;;
esac
