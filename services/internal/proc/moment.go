package proc

import "time"

// A Moment is a point of the clock that every process of a machine shares, that nobody sets, and that goes on while the machine
// is suspended: nanoseconds since it was started. So owner and steward mean the same by it, and a lease that somebody
// elsewhere counts does not become longer on a machine that slept. The zero value is none.
type Moment int64

// Add is the moment so much later.
func (m Moment) Add(d time.Duration) Moment { return m + Moment(d) }

// Sub is the time from another moment to this one.
func (m Moment) Sub(other Moment) time.Duration { return time.Duration(m - other) }
