// Package services holds what the roles do, one package a role, and nothing
// itself.
//
// # What it guarantees
//
//   - Arrows point one way: cmd, services, services/internal, events. A role
//     imports no other role; roles talk through events alone, so each can be
//     replaced, stopped or moved to another host without the others knowing.
//   - Package front alone imports every role, host none: host runs what it is
//     handed.
//   - Adapters live below internal, where no program of cmd can reach them, and
//     each module of others has a named owner there.
//
// # Who owns what
//
// Package internal/repocheck owns these rules; its tests print the reason of one
// that is broken.
//
// # What can go wrong
//
// Nothing runs from here. A broken arrow fails the tests, not the build.
package services
