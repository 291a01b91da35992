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

# Two agents in their loops: one works and never commits, the other one's provider
# refuses its log-in, in the words of Claude Code.
project() { # NAME SCRIPT MORE
  git init -q "$work/$1"
  printf 'Keep notes.\n' >"$work/$1/PROMPT.md"
  git -C "$work/$1" add . && git -C "$work/$1" -c user.name=demo -c user.email=demo@localhost commit -qm start
  printf '#!/bin/sh\n%s\n' "$2" >"$work/$1-agent.sh"
  chmod +x "$work/$1-agent.sh"
  printf '\n[projects.%s]\nenabled = true\nwork_dir = "%s"\nagent = ["%s"]\nprompt_file = "PROMPT.md"\nrestart_delay_s = 1\n%s\n' \
    "$1" "$work/$1" "$work/$1-agent.sh" "$3" >>"$BANKSMAN_DIR/banksman.toml"
}
project notes 'cat >>notes.txt; echo "draft $(wc -l <notes.txt)" >draft.txt; echo wrote a note' 'max_rounds = 3'
refused=$(dirname "$0")/../services/supervisor/testdata/claude-401.jsonl
cp "$refused" "$work/refused.jsonl"
project locked "cat $work/refused.jsonl; exit 1" ''

say "Now with a worker, and two agents in their loops"
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

say "The first agent left its work uncommitted, three times: every bit is kept"
loop_is() { for _ in $(seq 2000); do "$banksman" loop status --json "$1" | grep -q "\"state\": \"$2\"" && return; done; fail "$1 did not become $2"; }
loop_is notes halted
run round ls notes
git -C "$work/notes" show --stat --format=%s refs/banksman/salvage/notes/notes-3
say "The second one's log-in fails until the monitor stops it"
loop_is locked stopped
run alert ls
run loop status

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
