package events

var hostKinds = []Def{
	define[HostObserved]("host.observed", 1, "a worker or a supervisor had measured its machine, after a change of level or five minutes after the last time"),
}

// Levels of a machine's disks and memory, the worse one last.
const (
	LevelOK       = "ok"
	LevelWarning  = "warning"
	LevelCritical = "critical"
)

// HostObserved is how a machine stands. The subject's id is the session of the
// process that measured.
type HostObserved struct {
	// Host is the machine's own name.
	Host string `json:"host"`
	// Level is the worst of those below: "ok", "warning" or "critical".
	Level string `json:"level"`
	// Disks are the file systems that the process writes to.
	Disks []Disk `json:"disks"`
	// MemoryTotalBytes is the machine's memory.
	MemoryTotalBytes int64 `json:"memory_total_bytes"`
	// MemoryAvailableBytes is what programs may still get without swapping.
	MemoryAvailableBytes int64 `json:"memory_available_bytes"`

	Extra Extra `json:",embed"`
}

// Disk is one file system.
type Disk struct {
	// Path is a folder on it.
	Path string `json:"path"`
	// TotalBytes is its size.
	TotalBytes int64 `json:"total_bytes"`
	// FreeBytes is what a user other than root may still write.
	FreeBytes int64 `json:"free_bytes"`
	// Level is "ok", "warning" or "critical".
	Level string `json:"level"`
}
