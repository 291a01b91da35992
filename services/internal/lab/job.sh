#!/bin/sh
# A job of a yard: job.sh NAME DEED [ARG]
#
# It takes its job's lock, so that a second execution beside it is seen, and
# appends a line when it starts and when it ends. The lock belongs to everything
# that the job starts: what is left of an execution counts as the execution.
yard=${0%/*}
name=$1
exec 9>>"$yard/locks/$name"
say() { echo "$name $BANKSMAN_MARKER $$ $1" >>"$yard/effects"; }
if ! flock -n 9; then
	say overlaps
	exit 99
fi
say starts
case $2 in
quick) ;;
lasts) sleep "$3" ;;
waits) # until the test opens the gate
	flock -s "$yard/gates/$3" true
	;;
traps) # TERM while it waits for the gate, and fails
	trap 'exit 1' TERM
	flock -s "$yard/gates/$3" true || exit 1
	;;
floods) # its output without end, and does not go when it is asked to
	trap '' TERM
	yes "$name" &
	yes "$name" >&2
	;;
prints) # so many bytes once the gate is open
	flock -s "$yard/gates/$4" true
	head -c "$3" /dev/zero
	;;
fills) # the disk of its folder
	head -c 10000000 /dev/zero >ballast || exit 28
	;;
fails) # with a status, so many times
	if [ "$(grep -c "^$name .* starts\$" "$yard/effects")" -le "$4" ]; then
		exit "$3"
	fi
	;;
poisons) # ends what watches it, and the worker behind that
	read -r stat <"/proc/$PPID/stat"
	set -- ${stat##*) }
	kill -9 "$2" "$PPID"
	trap '' TERM
	while :; do sleep 1; done
	;;
scatters | leaves)
	# One that ignores TERM, one in a session of its own, one that holds the
	# pipes, and one that is an orphan at once.
	(
		trap '' TERM INT HUP
		while :; do sleep 1; done
	) &
	setsid sh -c 'trap "" TERM; while :; do sleep 1; done' >/dev/null 2>&1 </dev/null &
	sleep 1000 &
	(setsid sleep 1000 &)
	say scattered
	if [ "$2" = scatters ]; then
		wait
	fi
	;;
esac
echo "done: $name"
say ends
