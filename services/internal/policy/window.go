package policy

import (
	"fmt"
	"strings"
	"time"
)

// window is when a rule applies. The zero value is always.
type window struct {
	days     [7]bool // by time.Weekday
	dayed    bool
	from, to int // minutes of the day; to is not within
	houred   bool
}

const minutesOfDay = 24 * 60

// covers reports whether the moment of q lies in the window. A moment that nobody has
// told counts for a permitting rule only while the decision is provisional, and for a
// denying rule only when it is not.
func (w window) covers(q Request, permitting bool) bool {
	if !w.dayed && !w.houred {
		return true
	}
	if q.At.IsZero() {
		return permitting != resolved(q)
	}
	at := q.At.UTC()
	minute, day := at.Hour()*60+at.Minute(), at.Weekday()
	if w.houred {
		switch {
		case w.from < w.to:
			if minute < w.from || minute >= w.to {
				return false
			}
		case minute >= w.to && minute < w.from:
			return false
		case minute < w.to:
			day = (day + 6) % 7 // the part after midnight belongs to the day before
		}
	}
	return !w.dayed || w.days[day]
}

func readWindow(t *table) window {
	var w window
	if t.has("days_utc") {
		w.dayed = true
		for _, name := range t.texts("days_utc") {
			day, ok := weekday(name)
			if !ok {
				t.problem(ProblemBadValue, "days_utc", fmt.Sprintf("days_utc holds %q", name), `write "mon", "tue", "wed", "thu", "fri", "sat" or "sun"`)
				continue
			}
			w.days[day] = true
		}
	}
	if hours := t.text("hours_utc"); t.has("hours_utc") {
		w.houred = true
		begin, end, ok := strings.Cut(hours, "-")
		var fine1, fine2 bool
		w.from, fine1 = minuteOf(begin)
		w.to, fine2 = minuteOf(end)
		if !ok || !fine1 || !fine2 || w.from == w.to {
			t.problem(ProblemBadValue, "hours_utc", fmt.Sprintf("hours_utc is %q", hours), `write "08:00-18:00"; a later begin than end goes over midnight`)
		}
	}
	return w
}

func weekday(name string) (time.Weekday, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.ToLower(day.String()[:3]) == name {
			return day, true
		}
	}
	return 0, false
}

// minuteOf reads a time such as 08:00; 24:00 is the end of a day.
func minuteOf(text string) (int, bool) {
	var hour, minute int
	if len(text) != 5 {
		return 0, false
	}
	if n, err := fmt.Sscanf(text, "%2d:%2d", &hour, &minute); err != nil || n != 2 || hour < 0 || minute < 0 || minute > 59 || hour*60+minute > minutesOfDay {
		return 0, false
	}
	return hour*60 + minute, true
}

// moment returns a moment within the window, for examples.
func (w window) moment() time.Time {
	at := time.Date(2024, 1, 1, 0, w.from, 0, 0, time.UTC) // a Monday
	for range 7 {
		if !w.dayed || w.days[at.Weekday()] {
			return at
		}
		at = at.AddDate(0, 0, 1)
	}
	return at
}
