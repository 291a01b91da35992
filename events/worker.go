package events

var workerKinds = []Def{
	define[WorkerStarted]("worker.started", 1, "a worker had connected and was ready to take jobs"),
	define[WorkerStopped]("worker.stopped", 1, "a worker had finished its jobs and taken its last one"),
}

// WorkerStarted announces a worker; the subject's scope is its pool, the id
// its session.
type WorkerStarted struct {
	// Slots is how many jobs it runs at once.
	Slots int `json:"slots"`
	// Version is banksman's.
	Version string `json:"version"`
	// UnsafeSharedUser says that jobs share the worker's user without a
	// namespace of their own.
	UnsafeSharedUser bool `json:"unsafe_shared_user,omitzero"`

	Extra Extra `json:",embed"`
}

// WorkerStopped takes leave.
type WorkerStopped struct {
	// Reason is why, such as "signal".
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}
