#!/usr/bin/env bash
# Looks for known vulnerabilities that the programs can reach, without asking a
# server: the database is built from the module golang.org/x/vulndb, whose version
# stands in scripts/tools/go.mod, once for each version and user.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}"
tools=scripts/tools/go.mod

version=$("$GO" list -modfile="$tools" -m -f '{{.Version}}' golang.org/x/vulndb)
home=${XDG_CACHE_HOME:-${HOME:?}/.cache}/banksman/vulndb
db=$home/$version
if [ ! -e "$db/index/db.json" ]; then
	if ! source=$("$GO" mod download -modfile="$tools" -json "golang.org/x/vulndb@$version" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p') || [ -z "$source" ]; then
		echo "vulncheck: fetch golang.org/x/vulndb $version, which holds the known vulnerabilities: it could not be had; see that GOPROXY reaches a server that has it" >&2
		exit 1
	fi
	mkdir -p "$home"
	draft=$(mktemp -d "$home/.draft-XXXXXX")
	trap 'rm -rf "$draft"' EXIT
	"$GO" tool -modfile="$tools" indexdb -vulns "$source/data/osv" -out "$draft/db"
	# Whoever was faster has built the same.
	mv -T "$draft/db" "$db" 2>/dev/null || [ -e "$db/index/db.json" ]
fi
"$GO" tool -modfile="$tools" govulncheck -db "file://$db" ./...
