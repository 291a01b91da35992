package proc

import (
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelSigaction is the kernel's struct sigaction, which is not the C
// library's.
type kernelSigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// forgetIgnored gives every signal that this process inherited as ignored its
// default again, so that the programs it starts do not inherit it. The runtime
// does so for the signals that it catches; the C library's own two, which some
// launchers leave ignored, it does not touch.
func forgetIgnored() {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return
	}
	_, line, _ := strings.Cut(string(status), "\nSigIgn:")
	line, _, _ = strings.Cut(line, "\n")
	ignored, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		return
	}
	var byDefault kernelSigaction
	for n := uintptr(1); n <= 64; n++ {
		if ignored&(1<<(n-1)) != 0 {
			unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&byDefault)), 0, unsafe.Sizeof(byDefault.mask), 0, 0)
		}
	}
}
