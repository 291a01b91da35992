// Package monitor is the role that watches every event, turns what is wrong
// into alerts, and orders a project to stop when going on does harm.
//
// # What it guarantees
//
//   - An alert is an episode: raised once, updated as it becomes plainly worse,
//     cleared once. Its id follows from the detector and what it is about, and each
//     event is appended behind the last one that was read, so neither a restart nor
//     a second monitor raises anything twice.
//   - A critical alert whose detector is configured to stop orders it once in an
//     episode, behind the alert. A person who lifts the order is not overruled by the
//     same episode; a new one begins only with new evidence.
//   - An order of an alert, or one to kill, that is not confirmed in time is
//     escalated: stop.escalated and a critical alert say so, and an order to drain
//     becomes one to kill.
//   - A bad event changes nothing but the position; it never ends the monitor.
//   - Nothing is decided before everything that was stored has been read.
//
// Detectors are pure folds over events; time reaches them as an argument. What
// they say is compared with the open alerts (decide.go, pure), and only the
// difference is appended, so whatever is interrupted is made up for by the next
// comparison.
//
// # Who owns what
//
// The stream owns alerts and orders. The monitor owns its memory of the stream:
// folds of projects and alerts and the state of detectors, of bounded number. It
// reads the stream from the first event, and skips unread what no detector
// watches, jobs above all; as a shortcut it keeps its memory and the position in
// one file below state/monitor. That file may be lost or deleted at any time: the
// next start reads from the first event again and comes to the same end.
//
// # What can go wrong
//
// The bus may be away: nothing is found and nothing is ordered meanwhile. While
// no monitor runs, nobody raises an alert; the next one does, from the same
// events. A supervisor that is gone cannot confirm an order: that is an alert,
// and a person's matter.
package monitor
