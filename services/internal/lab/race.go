//go:build race

package lab

// RaceEnabled says that this test was built with the race detector. Commands
// under test then are, too, and cost several times as much.
const RaceEnabled = true
