package front

import "golang.org/x/sys/unix"

// signalNumber is the number of a signal's name, 0 when the platform has none.
func signalNumber(name string) int { return int(unix.SignalNum(name)) }
