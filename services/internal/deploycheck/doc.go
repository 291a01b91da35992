// Package deploycheck tests what an operator deploys: the compose file, the
// Dockerfile and the units of systemd.
//
// # What it guarantees
//
//   - Every program of cmd/ has a service and a unit, and none is there without a
//     program, so that a new role cannot be forgotten.
//   - Each of them gives its role the keys of that role's actor and nothing else,
//     and that is enough: the roles are started as real processes with exactly the
//     files that their unit or service names, and run a job together.
//   - Hardening is measured by systemd's own tool against a bound.
//
// # Who owns what
//
// The files below deploy/ and the compose file are the facts; the package holds
// only tests.
//
// # What can go wrong
//
// No engine of containers runs here: what is tested of an image is what its
// Dockerfile says. Tests that need systemd-analyze are skipped without it, and
// fail instead where BANKSMAN_REQUIRE=1.
package deploycheck
