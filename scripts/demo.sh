#!/usr/bin/env bash
# The whole life of three commands in a temporary folder: one allowed by rule, one
# approved by the demo's operator, one denied. Everything is real and everything is
# removed at the end. Called by `make demo`; needs bin/banksman and git.
set -euo pipefail

banksman=$(cd "$(dirname "$0")/.." && pwd)/bin/banksman
forge=$(dirname "$banksman")/forge
work=$(mktemp -d "${TMPDIR:-/tmp}/banksman-demo.XXXXXX")
export BANKSMAN_DIR=$work/site
unset BANKSMAN_TOKEN BANKSMAN_SOCKET
up=

cleanup() {
  [ -n "$up" ] && kill -TERM "$up" 2>/dev/null && wait "$up" 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || say() { printf '\n== %s\n' "$*"; }
run() { printf '$ banksman %s\n' "$*"; "$banksman" "$@"; }
fail() { printf 'demo: %s\n' "$*" >&2; exit 1; }

start() {
  "$banksman" up "$@" >"$work/up.out" 2>>"$work/up.err" &
  up=$!
  "$banksman" status --wait 30s >/dev/null || { cat "$work/up.err" >&2; fail "banksman up did not become ready"; }
}
stop() { kill -TERM "$up"; wait "$up" || fail "up did not end in order"; up=; }

say "A new site, started without a worker"
"$banksman" init --no-passphrase >/dev/null
start --without worker
run status

say "rm -rf / is denied at once, though nothing could run it"
code=0; run run -- rm -rf / || code=$?
[ "$code" = 77 ] || fail "want exit 77, got $code"
stop

say "Now with a worker"
start
cat "$work/up.out"

say "git --version is allowed by a rule"
run run -- git --version

say "A test run in a sample repository asks; the operator approves"
git init -q "$work/repo"
printf '#!/bin/sh\nset -e\n[ "$(expr 6 \\* 7)" = 42 ]\necho "1 test passed"\n' >"$work/repo/test.sh"
(
  cd "$work/repo"
  printf '$ banksman run --reason "run the tests" -- sh test.sh\n'
  "$banksman" run --reason "run the tests" -- sh test.sh
) &
asking=$!
for _ in $(seq 500); do "$banksman" inbox --json | grep -q '"pending"' && break; done
run inbox
job=$("$banksman" inbox --json | sed -n 's/.*"job": "\(.*\)",/\1/p')
run approve "$job"
wait "$asking" || fail "the test run failed"

say "What happened, each event checked"
run events
say "The jobs"
run ls

say "Stopped; the log verifies offline"
stop
run audit verify || fail "the log does not verify"

say "One flipped byte in a copy is named"
cp -R "$work/site/state/audit/log" "$work/copy"
flip() { # flips the lowest bit of one byte in place
  local byte
  byte=$(dd if="$1" bs=1 skip="$2" count=1 2>/dev/null | od -An -tu1)
  printf "\\$(printf '%03o' $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
flip "$work/copy/entries.log" $(($(wc -c <"$work/copy/entries.log") / 2))
code=0; run audit verify --log "$work/copy" || code=$?
[ "$code" = 1 ] || fail "verify exited $code on a changed log"

say "Started again: a forged approval, stored with the bus's own key, starts nothing"
start
forged=$("$banksman" propose --cwd "$work" --reason "shall never run" -- touch "$work/forged")
for _ in $(seq 500); do "$banksman" show --json "$forged" | grep -q '"resolution": {' && break; done
"$forge" -job "$forged" >/dev/null
for _ in $(seq 500); do "$banksman" show --json "$forged" | grep -q '"tainted"' && break; done
run show "$forged"
[ ! -e "$work/forged" ] || fail "the forged approval ran"
stop
code=0; run audit verify || code=$?
[ "$code" = 1 ] || fail "verify exited $code on a forged approval"

say "Nothing is left behind"
