// Package secretref fetches secrets that a proposal or a configuration only
// names, so that the value is nowhere but where it is used.
//
// # What it guarantees
//
//   - "secret:NAME" stands for a secret in a variable's value; the name is made
//     of letters, digits, "_", "-" and ".".
//   - A secret comes from a file ("file:/absolute/path"), from a credential of the
//     service manager ("cred:NAME" in $CREDENTIALS_DIRECTORY, systemd.exec(5)), or
//     from what a program prints ("cmd:PROGRAM ARG...", words separated by blanks,
//     no shell). One line break at its end is not part of it.
//   - A value has at most 64 KiB and no NUL, for it is going to be a variable.
//   - No error repeats a value.
//
// # Who owns what
//
// A Set remembers the values that it has fetched, the current and the one before
// of each name, for whoever must recognise them. It writes them nowhere.
//
// # What can go wrong
//
// A source may be missing, empty or not readable: the error names the secret and
// the source. A program may hang: who runs it bounds it.
package secretref
