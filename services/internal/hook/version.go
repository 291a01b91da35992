package hook

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Strength is how well a version of the program lets a hook block.
type Strength int

// The strengths.
const (
	CannotBlock   Strength = iota // not known to take a denial and a rewritten input
	BlocksByShell                 // a hook that fails blocks by "|| exit 2" alone
	Blocks                        // it also knows the blocking failure mode
)

// The first versions that are known for each.
var (
	firstByShell = [3]int{2, 1, 197}
	firstBlocks  = [3]int{2, 1, 332}
)

var versionForm = regexp.MustCompile(`^(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b`)

// StrengthOf reads what the program prints for its version, such as
// "2.1.332 (Claude Code)".
func StrengthOf(version string) (Strength, error) {
	m := versionForm.FindStringSubmatch(version)
	if m == nil {
		return CannotBlock, fmt.Errorf("%.60q is no version such as 2.1.332", version)
	}
	var v [3]int
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // the form admits numbers only
	}
	switch {
	case slices.Compare(v[:], firstByShell[:]) < 0:
		return CannotBlock, nil
	case slices.Compare(v[:], firstBlocks[:]) < 0:
		return BlocksByShell, nil
	}
	return Blocks, nil
}

// Required names the first version that is known to block.
func Required() string {
	return fmt.Sprintf("%d.%d.%d", firstByShell[0], firstByShell[1], firstByShell[2])
}
