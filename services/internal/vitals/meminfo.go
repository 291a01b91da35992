package vitals

import (
	"bytes"
	"errors"
	"strconv"
)

// parseMemory reads /proc/meminfo, see proc_meminfo(5).
func parseMemory(text []byte) (total, available int64, err error) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) != 3 || string(fields[2]) != "kB" {
			continue
		}
		kib, err := strconv.ParseInt(string(fields[1]), 10, 53)
		if err != nil || kib < 0 {
			continue
		}
		switch string(fields[0]) {
		case "MemTotal:":
			total = kib * 1024
		case "MemAvailable:":
			available = kib * 1024
		}
	}
	if total == 0 || available > total {
		return 0, 0, errors.New("measure the memory: /proc/meminfo does not say MemTotal and MemAvailable")
	}
	return total, available, nil
}
