//go:build !race

package tlog

// stride is how many bits, bytes or cuts the exhaustive tests go on by: all of them.
const stride = 1
