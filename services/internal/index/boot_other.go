//go:build !linux

package index

import "golang.org/x/sys/unix"

// bootID names the present boot of the machine.
func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }
