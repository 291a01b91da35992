package index

import (
	"encoding/binary"
	"encoding/json/v2"
	"errors"
	"hash/crc32"

	"github.com/banksman/banksman/events/lifecycle"
)

const sum_bytes = 4

// withSum puts a CRC-32C in front of a value. The database has none for its pages,
// and a job with one flipped bit would otherwise read as another job.
func withSum(body []byte) []byte {
	out := make([]byte, sum_bytes, sum_bytes+len(body))
	binary.BigEndian.PutUint32(out, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, body...)
}

// checked is the inverse of withSum.
func checked(value []byte) ([]byte, error) {
	if len(value) < sum_bytes {
		return nil, errors.New("the value is missing or too short")
	}
	body := value[sum_bytes:]
	if binary.BigEndian.Uint32(value) != crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) {
		return nil, errors.New("the checksum differs")
	}
	return body, nil
}

func encodeJob(j lifecycle.Job) ([]byte, error) {
	body, err := json.Marshal(j, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return withSum(body), nil
}

func decodeJob(value []byte) (lifecycle.Job, error) {
	var j lifecycle.Job
	body, err := checked(value)
	if err == nil {
		err = json.Unmarshal(body, &j)
	}
	if err != nil {
		return lifecycle.Job{}, damaged("a job", err)
	}
	return j, nil
}

// place is the key of a job: the sequence of its first event, so that new jobs are
// written side by side and a walk from the end is newest first.
func place(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// placeOf reads the place at the end of a key.
func placeOf(key []byte) (uint64, bool) {
	if len(key) < 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[len(key)-8:]), true
}

func statusPrefix(s lifecycle.Status) []byte { return append([]byte(s), 0) }

func fromPrefix(proposer string) []byte { return append([]byte(proposer), 0) }

func poolPrefix(pool string, s lifecycle.Status) []byte {
	return append(append([]byte(pool), 0), statusPrefix(s)...)
}
