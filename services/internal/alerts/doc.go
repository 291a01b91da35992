// Package alerts reads what the stream holds about one alert, and makes what a
// person may say about it.
//
// # What it guarantees
//
// Everybody folds with this package and events/lifecycle/alert, so they cannot
// disagree: an event that may not be believed changes nothing but the
// position. [Acknowledge] refuses what the fold would refuse.
//
// # Who owns what
//
// It keeps no state. The stream owns the events, the caller the result.
//
// # What can go wrong
//
// Between reading and appending somebody else may append. Then the bus answers
// with a conflict; read again and decide anew.
package alerts
