package standing

import (
	"context"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/jobs"
)

// Job folds what the stream holds of a job. The error is jobs.ErrUnknown when
// it holds nothing, or when the id is none. What the job holds is shared with other
// callers, who read it.
func (s *Standing) Job(ctx context.Context, id string) (lifecycle.Job, error) {
	if events.For("job.proposed", events.SiteScope, id, events.SiteScope).Valid() != nil { // a wildcard would be every job
		return lifecycle.Job{}, fmt.Errorf("job %q: %w", id, jobs.ErrUnknown)
	}
	if j, known, err := s.moved(ctx, id); known || err != nil {
		return j, err
	}
	history, err := s.bus.History(ctx, id)
	if err != nil {
		return lifecycle.Job{}, fmt.Errorf("read job %s: %w", id, err)
	}
	if len(history) == 0 {
		return lifecycle.Job{}, fmt.Errorf("job %s: %w", id, jobs.ErrUnknown)
	}
	if err := s.Refresh(ctx); err != nil {
		return lifecycle.Job{}, err
	}
	j, _ := jobs.Fold(s.book, history)
	j.ID = id // also where no proposal can be believed
	size := 0
	for _, st := range history {
		size += len(st.Data)
	}
	last := history[len(history)-1].Seq
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs.put(id, folded{job: j, last: last, through: last, trust: s.trustSeq, bytes: size})
	return j, nil
}

// moved brings a job that was folded before up to the stream's end. It is not known
// where it was never folded, where a trust file came since, and where what came does
// not follow, event by event, what was folded.
func (s *Standing) moved(ctx context.Context, id string) (j lifecycle.Job, known bool, err error) {
	s.mu.Lock()
	f, held := s.jobs.get(id)
	after := min(f.through, s.trusted)
	held = held && f.trust == s.trustSeq && s.trustFault == nil
	s.mu.Unlock()
	if !held {
		return j, false, nil
	}
	filter := events.Filter("job", id)
	page, through, err := s.newer(ctx, after, filter)
	if err != nil {
		return j, false, fmt.Errorf("read job %s: %w", id, err)
	}
	if through < f.last { // also where a replica lags behind, or the stream went back
		return j, false, nil
	}
	for _, st := range beyond(page, f.last) {
		if before, ok := bus.Predecessor(st, filter); !ok || before != f.last {
			return j, false, nil
		}
		f.job, _ = jobs.Apply(f.job, s.book, st)
		f.job.ID = id
		f.last, f.bytes = st.Seq, f.bytes+len(st.Data)
	}
	f.through = through
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs.put(id, f)
	return f.job, true, nil
}

// newer asks the stream for what was stored under a filter after a sequence. Through
// is 0 when it must be read in another way, also because there is a newer trust file,
// by which it would have to be judged.
func (s *Standing) newer(ctx context.Context, after uint64, filter string) (page []events.Stored, through uint64, err error) {
	all, through, err := s.bus.Newer(ctx, after, filter, trustFilter)
	if err != nil || through == 0 {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trustFault != nil {
		return nil, 0, s.trustFault
	}
	for _, st := range all {
		switch sub, err := events.ParseSubject(st.Subject); {
		case err != nil || sub.Filter() != trustFilter:
			page = append(page, st)
		case st.Seq > s.trustSeq:
			return nil, 0, nil
		}
	}
	s.trusted = max(s.trusted, through)
	return page, through, nil
}

// beyond leaves out what is known already.
func beyond(page []events.Stored, seq uint64) []events.Stored {
	for i, st := range page {
		if st.Seq > seq {
			return page[i:]
		}
	}
	return nil
}

// folded is a job as far as it was folded.
type folded struct {
	job     lifecycle.Job
	last    uint64 // its last event that was folded
	through uint64 // the stream holds none between that and here
	trust   uint64 // the trust file by which the newest of them was judged
	bytes   int    // what its events hold
}

// Bounds of what is kept.
const (
	shelfJobs  = 256      // for certain; twice as many perhaps
	shelfBytes = 16 << 10 // of one job; a larger one is read anew each time
)

// shelf keeps the jobs that were asked for last. The zero value is empty.
type shelf struct {
	young, old map[string]folded // a full young becomes the old, and the old is forgotten
}

func (s *shelf) get(id string) (folded, bool) {
	f, ok := s.young[id]
	if !ok {
		f, ok = s.old[id]
	}
	return f, ok
}

func (s *shelf) put(id string, f folded) {
	if f.bytes > shelfBytes {
		delete(s.young, id)
		delete(s.old, id)
		return
	}
	if now, ok := s.get(id); ok && now.last > f.last {
		return // somebody has seen more of it meanwhile
	}
	if _, ok := s.young[id]; !ok && len(s.young) >= shelfJobs {
		s.old, s.young = s.young, nil
	}
	if s.young == nil {
		s.young = make(map[string]folded)
	}
	s.young[id] = f
}
