//go:build race

package tlog

// stride thins the exhaustive tests out under the race detector: they run in one
// goroutine and would take minutes.
const stride = 13
