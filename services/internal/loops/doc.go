// Package loops reads what the stream holds about projects, believing only
// what the trust file allows, and makes what people and the monitor may say
// about one.
//
// # What it guarantees
//
// Everybody who decides something about a project, be it its supervisor, the
// monitor or a person, folds with this package, so they cannot disagree: an
// event that may not be believed changes nothing but the position. [Order],
// [Lift] and [Restart] refuse what the fold would refuse, in words that say what
// to do instead.
//
// Reading a project costs the same after a million rounds as after ten: its
// loop, its stop order, and its newest round are read, nothing else.
//
// # Who owns what
//
// It keeps no state. The stream owns the events, the caller the result.
//
// # What can go wrong
//
// Between reading and appending somebody else may append. Then the bus answers
// with a conflict; read again and decide anew.
package loops
