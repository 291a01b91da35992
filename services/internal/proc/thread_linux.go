package proc

import "runtime"

// A thread is one of the operating system that does what it is told and ends
// with it: what is forbidden to it stays forbidden, and the kernel takes it for
// the tracer of what it starts. Nil is the caller's own.
type thread struct {
	tasks chan func()
	ended chan struct{}
}

func newThread() *thread {
	t := &thread{tasks: make(chan func()), ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		runtime.LockOSThread() // and never unlocked, which ends the thread
		for task := range t.tasks {
			task()
		}
	}()
	return t
}

// do runs a task on the thread and waits for it.
func (t *thread) do(task func() error) error {
	if t == nil {
		return task()
	}
	done := make(chan error)
	t.tasks <- func() { done <- task() }
	return <-done
}

// end waits until the thread does nothing any more.
func (t *thread) end() {
	if t == nil {
		return
	}
	close(t.tasks)
	<-t.ended
}
