package front

import "golang.org/x/sys/unix"

// staUnsync is STA_UNSYNC of adjtimex(2): nobody keeps the clock.
const staUnsync = 0x40

// clockState says whether a time service keeps the clock.
func clockState() (kept bool, err error) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, err
	}
	return t.Status&staUnsync == 0, nil
}
