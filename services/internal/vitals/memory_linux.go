package vitals

import (
	"fmt"
	"os"
)

// memory reads the kernel's own count.
func memory() (total, available int64, err error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0, fmt.Errorf("measure the memory: %w", err)
	}
	return parseMemory(text)
}
