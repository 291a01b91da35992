//go:build !race

package lab

// raceEnabled builds commands under test with the race detector, too.
const raceEnabled = false
