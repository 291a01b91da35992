// Package composetest reads the compose file with the reader of the Compose
// Specification itself. It is a module of its own, so that nothing of it reaches
// the modules that banksman's programs are built from.
package composetest
