#!/bin/sh
# Verify the evidence bundle of one job with sha256sum, openssl, xxd, base64 and awk:
#
#   [TSA_CA=FILE] verify.sh BUNDLE SITE ROOT_KEY
#
# SITE is the site's name, ROOT_KEY its root's public key ("ed25519:..."); both must
# come from somewhere else than the bundle. Exits 0 when the bundle proves what it
# holds: signed head, inclusion of every entry, digests, signatures and roles, links
# from the last event to the first, that nothing of the job came later, which the newest
# state of the log must say as well where one came later, and that words of
# people are those that the events name, or were erased by a signed order.
#
# It does not look into payloads, trust files excepted: whether a decision was made on
# the right basis or a payload has the form of its kind only "banksman audit verify
# --bundle" says. How old the head may be is for the reader to judge; it is printed.
set -eu
export LC_ALL=C

[ $# -eq 3 ] || { echo "usage: verify.sh BUNDLE SITE ROOT_KEY" >&2; exit 2; }
site=$2 root=$3
cd "$1" || exit 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

sum() { sha256sum | cut -c1-64; }
leafhash() { { printf '\000'; cat "$1"; } | sum; }
unbase64() { printf '%s' "$1" | base64 -d 2>/dev/null | xxd -p -c 4096; }
# rawkey turns "ed25519:" and base64url without padding into hex.
rawkey() { unbase64 "$(printf '%s=' "${1#ed25519:}" | tr -- '-_' '+/')"; }
# signed MESSAGE_FILE KEY_HEX SIGNATURE_HEX
signed() {
  [ ${#2} -eq 64 ] && [ ${#3} -eq 128 ] || return 1
  printf '302a300506032b6570032100%s' "$2" | xxd -r -p >"$tmp/key"
  printf '%s' "$3" | xxd -r -p >"$tmp/sig"
  openssl pkeyutl -verify -pubin -keyform DER -inkey "$tmp/key" -rawin -in "$1" -sigfile "$tmp/sig" >/dev/null 2>&1
}
# line KEY FILE prints the value of an entry's line.
line() { awk -v k="$1" '$1 == k { sub(/^[^ ]* /, ""); print; exit }' "$2"; }

# --- what is here
[ -f checkpoint ] && [ -f job ] || fail "no checkpoint or no job file; is this a bundle?"
job=$(cat job)
printf '%s\n' "$job" | cmp -s - job || fail "job file malformed"
case $job in '' | *[!a-z0-9_-]*) fail "job file malformed" ;; esac
# An empty folder name in the pattern is harmless: such files do not exist.
for f in * .*; do
  case $f in .|..|'*'|'.*') continue ;; esac
  [ -f "$f" ] && [ ! -L "$f" ] || fail "$f is not a file"
  case $f in
    checkpoint|checkpoint.tsr|job|later.entries) continue ;;
    *.text)
      [ ${#f} -eq 69 ] || fail "$f: no proof covers such a file"
      case ${f%.text} in *[!0-9a-f]*) fail "$f: no proof covers such a file" ;; esac
      continue ;;
    *.entry|*.headers|*.payload|*.tlog-proof|*.directory) n=${f%%.*} ;;
    *) fail "$f: no proof covers such a file" ;;
  esac
  case $n in 0|[1-9]|[1-9]*[0-9]) ;; *) fail "$f: no proof covers such a file" ;; esac
  case $n in *[!0-9]*) fail "$f: no proof covers such a file" ;; esac
  case ${f#"$n".} in entry|headers|payload|tlog-proof|directory) ;; *) fail "$f: no proof covers such a file" ;; esac
  echo "$n" >>"$tmp/numbers"
done
sort -nu "$tmp/numbers" >"$tmp/leaves"

# --- the head
awk '{ print } NR == 3 { exit }' checkpoint >"$tmp/head"
case "$(sed -n 1p "$tmp/head")" in "banksman/$site/epoch-"[1-9]*) ;; *) fail "the checkpoint is not of site $site" ;; esac
[ "$(sed -n 4p checkpoint)" = "" ] || fail "the checkpoint has lines that nobody reads"
size=$(sed -n 2p "$tmp/head")
case $size in ''|0*|*[!0-9]*) fail "the checkpoint's size is malformed" ;; esac
top=$(unbase64 "$(sed -n 3p "$tmp/head")")
[ ${#top} -eq 64 ] || fail "the checkpoint's root is malformed"

# climbs AT SIZE HASH TOP: the hashes in $tmp/hashes lead from a leaf to the root of the
# tree (RFC 9162, section 2.1.3.2).
climbs() {
  [ "$1" -lt "$2" ] || return 1
  ! grep -qv '^[A-Za-z0-9+/]\{43\}=$' "$tmp/hashes" || return 1
  at=$1 edge=$(($2 - 1)) hash=$3
  while read -r text; do
    side=$(unbase64 "$text")
    [ ${#side} -eq 64 ] && [ "$(printf '%s' "$side" | xxd -r -p | base64)" = "$text" ] || return 1
    [ "$edge" -gt 0 ] || return 1
    if [ $((at & 1)) -eq 1 ] || [ "$at" -eq "$edge" ]; then
      hash=$(printf '01%s%s' "$side" "$hash" | xxd -r -p | sum)
      while [ $((at & 1)) -eq 0 ] && [ "$at" -gt 0 ]; do at=$((at >> 1)) edge=$((edge >> 1)); done
    else
      hash=$(printf '01%s%s' "$hash" "$side" | xxd -r -p | sum)
    fi
    at=$((at >> 1)) edge=$((edge >> 1))
  done <"$tmp/hashes"
  [ "$edge" -eq 0 ] && [ "$hash" = "$4" ]
}

# included LEAF FILE: in the tree of the head
included() {
  awk '/^$/ { exit } { print }' "$1.tlog-proof" >"$tmp/path"
  { cat "$tmp/path"; echo; cat checkpoint; } | cmp -s - "$1.tlog-proof" || return 1
  [ "$(sed -n 1p "$tmp/path")" = "c2sp.org/tlog-proof@v1" ] || return 1
  [ "$(sed -n 2p "$tmp/path")" = "index $1" ] || return 1
  sed 1,2d "$tmp/path" >"$tmp/hashes"
  climbs "$1" "$size" "$(leafhash "$2")" "$top"
}

# listed STATE LAST: the directory of the state has LAST as the job's newest event
listed() {
  at=$(awk 'NR == 3 { print $2 }' "$1.directory")
  case $at in ''|*[!0-9]*|0?*) return 1 ;; esac
  printf 'job %s last %s\n' "$(printf '%s' "$job" | sum | cut -c1-32)" "$2" >"$tmp/listed"
  awk 'NR > 3' "$1.directory" >"$tmp/hashes"
  { echo banksman-directory/v1; cat "$tmp/listed"; echo "index $at"; cat "$tmp/hashes"; } | cmp -s - "$1.directory" || return 1
  climbs "$at" "$(line jobs "$1.entry")" "$(leafhash "$tmp/listed")" "$(line root "$1.entry")"
}

# may_publish ROLE KIND, for the kinds that a bundle holds
may_publish() {
  case "$1 $2" in
    "proposer job.proposed"|"proposer job.handed_over"|"proposer job.reported") ;;
    "gate job.assessed"|"gate job.approved"|"gate job.denied"|"gate job.expired") ;;
    "gate job.cancelled"|"gate job.revoked"|"gate job.lapsed") ;;
    "person job.approved"|"person job.denied") ;;
    "worker job.resolved"|"worker job.started"|"worker job.finished"|"worker job.declined") ;;
    "worker job.dead_lettered"|"worker job.cancelled"|"worker job.lapsed") ;;
    "admin text.erased") ;;
    *) return 1 ;;
  esac
}

# rights ACTOR prints keys, pools and roles from the trust file in force, a line each. An
# actor that rotates has two keys: the new one, and the old one until it is retired.
rights() {
  awk -v actor="$1" 'BEGIN { RS = "\\{\"actor\":\"" } NR > 1 {
    name = $0; sub(/".*/, "", name); if (name != actor) next
    key = ""; if (match($0, /"sign":"[^"]*"/)) key = substr($0, RSTART + 8, RLENGTH - 9)
    if (match($0, /"old_sign":"[^"]*"/)) key = key " " substr($0, RSTART + 12, RLENGTH - 13)
    pools = ""; if (match($0, /"pools":\[[^]]*\]/)) pools = substr($0, RSTART + 9, RLENGTH - 10)
    roles = ""; if (match($0, /"roles":\[[^]]*\]/)) roles = substr($0, RSTART + 9, RLENGTH - 10)
    gsub(/"/, "", pools); gsub(/"/, "", roles); gsub(/,/, " ", pools); gsub(/,/, " ", roles)
    print key; print pools; print roles; exit }' "$tmp/trust"
}

# authentic ENTRY PAYLOAD: signed by whom the trust file in force lets publish it
authentic() {
  subject=$(line subject "$1")
  oldifs=$IFS; IFS=.; set -f; set -- "$1" "$2" $subject; set +f; IFS=$oldifs
  [ $# -eq 8 ] || fail "$1: subject malformed"
  entry=$1 payload=$2 kind=$4.$7 scope=$5 actor=$8
  if [ "$kind" = trust.published ]; then
    [ "$actor.$scope.$6" = root.site.main ] || fail "$entry: a trust file of $actor"
    [ -f "$payload" ] || fail "$entry: a trust file must be whole"
    key=$root
  else
    [ -f "$tmp/trust" ] || fail "$entry: no trust file was in force"
    rights "$actor" >"$tmp/rights"
    key=$(sed -n 1p "$tmp/rights") pools=$(sed -n 2p "$tmp/rights")
    [ -n "$key" ] || fail "$entry: actor $actor is not in the trust file"
    allowed=
    for role in $(sed -n 3p "$tmp/rights"); do may_publish "$role" "$kind" && allowed=yes; done
    [ -n "$allowed" ] || fail "$entry: $actor may not publish $kind"
    [ -z "$pools" ] || [ "$kind" = text.erased ] || case " $pools " in *" $scope "*) ;; *) fail "$entry: $actor is not of pool $scope" ;; esac
  fi
  by=$(line actor "$entry" | cut -d' ' -f1)
  case " $key " in *" ${by:-none} "*) key=$by ;; *) fail "$entry: not signed with a key of $actor" ;; esac
  sig=$(line actor "$entry" | cut -d' ' -f2)
  printf 'banksman-event/v1\norigin %s\nsubject %s\nce %s\nexpect %s\npayload %s\n' "$site" "$subject" \
    "$(line meta "$entry")" "$(line expect "$entry")" "$(line payload "$entry")" >"$tmp/text"
  signed "$tmp/text" "$(rawkey "$key")" "$(unbase64 "$(printf '%s==' "$sig" | tr -- '-_' '+/')")" ||
    fail "$entry: the signature of $actor does not verify"
  if [ "$kind" = trust.published ]; then
    next=$(awk '{ if (match($0, /"version":[0-9]+/)) print substr($0, RSTART + 10, RLENGTH - 10); exit }' "$payload")
    grep -q "\"origin\":\"$site\"" "$payload" || fail "$entry: a trust file of another site"
    [ "$version" -eq 0 ] || [ "$next" -eq $((version + 1)) ] || fail "$entry: trust file $next follows $version"
    version=$next
    cp "$payload" "$tmp/trust"
  fi
}

# named_by LEAF notes the texts that people's words in the payload refer to, as lines of
# leaf, digest and length.
named_by() {
  [ -f "$1.payload" ] || return 0
  case $(line subject "$1.entry" | cut -d. -f5) in proposed|denied|cancelled|revoked) ;; *) return 0 ;; esac
  # Maps of the proposer's own words may hold such a name, too.
  sed 's/"\(env\|labels\)":{[^}]*}//g' "$1.payload" | grep -o '"reason":"\[text sha256:[0-9a-f]\{64\} [0-9]* bytes\]"' |
    sed "s/.*sha256:\([0-9a-f]*\) \([0-9]*\) bytes.*/$1 \1 \2/" >>"$tmp/named" || true
}

# --- every leaf
: >"$tmp/named"; : >"$tmp/erased"
count=0 before=- seq=0 last= version=0 withheld= state= newest_state=
while read -r n; do
  if [ ! -f "$n.entry" ] && [ "$n" -eq $((size - 1)) ] && [ -f later.entries ] && [ ! -f "$n.headers" ] && [ ! -f "$n.payload" ] && [ ! -f "$n.directory" ]; then
    continue
  fi
  [ -f "$n.entry" ] && [ -f "$n.tlog-proof" ] || fail "leaf $n: its entry or its proof is missing"
  included "$n" "$n.entry" || fail "leaf $n is not in the tree of the checkpoint"
  if [ "$(sed -n 1p "$n.entry")" = "banksman-entry/v1 state" ]; then
    [ -z "$state" ] && [ -f "$n.directory" ] && [ ! -f "$n.headers" ] && [ ! -f "$n.payload" ] || fail "leaf $n: a state has a directory and nothing else, and one is enough"
    state=$n
    continue
  fi
  [ ! -f "$n.directory" ] || fail "$n.directory: only a state has a directory"
  if [ -f "$n.headers" ]; then
    [ "$(sum <"$n.headers")" = "$(line headers "$n.entry")" ] || fail "leaf $n: the headers are others"
  elif [ "$(line headers "$n.entry")" != - ]; then
    withheld="$withheld $n"
  fi
  if [ -f "$n.payload" ]; then
    [ "$(sum <"$n.payload") $(($(wc -c <"$n.payload")))" = "$(line payload "$n.entry")" ] || fail "leaf $n: the payload is another"
  else
    withheld="$withheld $n"
  fi
  case $(line subject "$n.entry") in
    bm.trust.*) [ -f "$n.headers" ] || fail "leaf $n: a trust file must be whole" ;;
    bm.text.*.erased.*) line subject "$n.entry" | cut -d. -f4 >>"$tmp/erased" ;;
    *)
      [ "$(line job "$n.entry" | cut -d' ' -f1)" = "$job" ] || fail "leaf $n is of neither job $job nor trust"
      [ "$(line job "$n.entry" | cut -d' ' -f2)" = "$before" ] || fail "hole before leaf $n"
      [ "$(line expect "$n.entry")" = "$seq" ] || fail "leaf $n was signed for another place"
      before=$n seq=$(line seq "$n.entry") last=$n count=$((count + 1))
      named_by "$n" ;;
  esac
  authentic "$n.entry" "$n.payload"
done <"$tmp/leaves"
[ -n "$last" ] || fail "the bundle holds no event of job $job"

# --- who signed the head
[ -f "$tmp/trust" ] || fail "no trust file"
ok=
keys=$(awk '{ if (match($0, /"checkpoint_keys":\[[^]]*\]/)) print substr($0, RSTART + 19, RLENGTH - 20) }' "$tmp/trust" | tr -d '"' | tr ',' ' ')
for vkey in $keys; do
  name=${vkey%%+*} rest=${vkey#*+}
  id=${rest%%+*} raw=$(unbase64 "${rest#*+}")
  for text in $(awk -v name="$name" 'NR > 4 && $2 == name { print $3 }' checkpoint); do
    sig=$(unbase64 "$text")
    [ "${sig%"${sig#????????}"}" = "$id" ] || continue
    [ "$(printf '%s' "$sig" | xxd -r -p | base64 -w0)" = "$text" ] || fail "a signature of the checkpoint is malformed"
    signed "$tmp/head" "${raw#01}" "${sig#????????}" || fail "the checkpoint's signature does not verify"
    ok=yes
  done
done
[ -n "$ok" ] || fail "the checkpoint is not signed by a key of the newest trust file"
awk 'NR > 4 && (NF != 3 || $1 != "\342\200\224") { exit 1 }' checkpoint || fail "the checkpoint has a line that is no signature"

# --- when the head existed. Whose certificate vouches for the authority is TSA_CA's matter;
# without it the stamp only has to be whole.
stamped=
if [ -f checkpoint.tsr ]; then
  openssl ts -reply -in checkpoint.tsr -text >"$tmp/stamp" 2>/dev/null || fail "checkpoint.tsr is no time stamp"
  stamped=$(sed -n 's/^Time stamp: //p' "$tmp/stamp")
  vouch=${TSA_CA:-}
  if [ -z "$vouch" ]; then
    openssl ts -reply -in checkpoint.tsr -token_out -out "$tmp/token" 2>/dev/null &&
      openssl pkcs7 -inform DER -in "$tmp/token" -print_certs -out "$tmp/certs" 2>/dev/null || fail "checkpoint.tsr carries no certificate"
    vouch=$tmp/certs
  fi
  openssl ts -verify -data checkpoint -in checkpoint.tsr -CAfile "$vouch" -partial_chain -no_check_time >/dev/null 2>&1 ||
    fail "checkpoint.tsr is no stamp of this head by an authority that is vouched for"
fi

# --- nothing of the job came later
if [ "$last" -eq $((size - 1)) ]; then
  [ ! -f later.entries ] || fail "later.entries: nothing comes later"
else
  [ -f later.entries ] || fail "nothing shows that leaf $last of $size is the job's last event"
  mkdir "$tmp/later"
  awk -v dir="$tmp/later" -v n="$last" '/^banksman-entry\/v1 / { if (f) close(f); f = sprintf("%s/%015d", dir, ++n) }
    f == "" { exit 1 } { print > f }' later.entries || fail "later.entries is malformed"
  cat "$tmp/later"/* | cmp -s - later.entries || fail "later.entries is malformed"
  [ "$(ls "$tmp/later" | wc -l)" -eq $((size - 1 - last)) ] || fail "later.entries does not reach the end of the tree"
  sha256sum "$last.entry" "$tmp/later"/* | cut -c1-64 | sed '$d' >"$tmp/sums"
  awk 'FNR == 2 { print $2 }' "$tmp/later"/* >"$tmp/links"
  cmp -s "$tmp/sums" "$tmp/links" || fail "later.entries: an entry does not name the one before it"
  awk -v job="$job" '$1 == "job" && $2 == job { exit 1 }' "$tmp/later"/* || fail "later.entries holds an event of the job"
  for f in $(grep -l '^subject bm\.trust\.' "$tmp/later"/* || true); do
    n=$(basename "$f" | sed 's/^0*//')
    [ -f "$n.entry" ] || fail "leaf $n is a trust file, and the bundle leaves it out"
  done
  for f in $(grep -l '^banksman-entry/v1 state$' "$tmp/later"/* || true); do newest_state=$(basename "$f" | sed 's/^0*//'); done
  end=$(printf '%s/%015d' "$tmp/later" $((size - 1)))
  [ -f "$((size - 1)).tlog-proof" ] && included $((size - 1)) "$end" || fail "the last of later.entries is not the last of the tree"
fi
[ "$state" = "$newest_state" ] || fail "the newest state after leaf $last is ${newest_state:-none}, the bundle holds ${state:-none}"
[ -z "$state" ] || listed "$state" "$last" || fail "the state at leaf $state does not say that leaf $last is the job's last event"
# --- words of people
gone=
while read -r n digest length; do
  if [ -f "$digest.text" ]; then
    [ "$(sum <"$digest.text")" = "$digest" ] && [ $(($(wc -c <"$digest.text"))) -eq $((length + 16)) ] || fail "$digest.text: not the words that leaf $n names"
  elif grep -q "^$digest$" "$tmp/erased"; then
    gone="$gone $n"
  else
    fail "withheld: the words that leaf $n names are not here, and no order to erase them is"
  fi
done <"$tmp/named"
for f in *.text; do
  [ ! -f "$f" ] || grep -q " ${f%.text} " "$tmp/named" || fail "$f: no event of the job names such words"
done
while read -r digest; do
  grep -q " $digest " "$tmp/named" || fail "an order erases words that no event of the job names"
done <"$tmp/erased"

newest=$(line time "$(ls -d "$tmp/later"/* 2>/dev/null | tail -n 1 | grep . || echo "$last.entry")")
echo "ok: job $job, $count events, all of it in a signed head of $size entries"
[ -z "$stamped" ] || echo "stamped: the head existed at $stamped${TSA_CA:+, by an authority that $TSA_CA vouches for}"
[ -z "$gone" ] || echo "erased by order: the words of leaves$gone"
[ -z "$withheld" ] || echo "withheld: the headers or payload of leaves$withheld"
[ -z "$newest" ] || echo "the last entry is of $(date -u -d "@$((newest / 1000000000))" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || echo "$newest ns")"
