# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Sourced: apt_ensure PACKAGE... installs what is missing, and is silent unless
# something has to be done or goes wrong.

apt_ensure() {
	local missing=() p sudo=() log
	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
		    missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	echo "installing: ${missing[*]}"
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || {
			echo "need root or sudo for: apt-get install ${missing[*]}" >&2
			return 1
		}
		sudo=(sudo)
	fi
	log=$(mktemp)
	if ! apt_install "${missing[@]}" >"$log" 2>&1; then
		# The lists are absent or old.
		if ! { "${sudo[@]}" apt-get update && apt_install "${missing[@]}"; } >"$log" 2>&1; then
			tail -n 30 "$log" >&2
			rm -f "$log"
			return 1
		fi
	fi
	rm -f "$log"
}

# Uses sudo of apt_ensure.
apt_install() {
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y \
	    --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" </dev/null
}
