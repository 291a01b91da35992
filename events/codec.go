package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/v2"
	"fmt"
	"reflect"
)

// Encode writes a payload in its one form: members in the order of the struct,
// map members sorted, unknown members last, no insignificant space.
func Encode(payload any) ([]byte, error) {
	b, err := json.Marshal(payload, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", payload, err)
	}
	return b, nil
}

// Decode reads a stored payload of a known kind and version. Unknown members
// are kept; duplicate members, invalid UTF-8 and trailing bytes are refused.
// The result is a pointer to the catalogue's type.
func Decode(d Def, data []byte) (any, error) {
	p := reflect.New(d.Type)
	if err := json.Unmarshal(data, p.Interface()); err != nil {
		return nil, fmt.Errorf("decode %s v%d: %w", d.Kind, d.Version, err)
	}
	return p.Interface(), nil
}

// DecodeCanonical is Decode for what a writer is about to publish: bytes that
// Encode would not have written, or members nobody defined, are refused.
func DecodeCanonical(d Def, data []byte) (any, error) {
	p, err := Decode(d, data)
	if err != nil {
		return nil, err
	}
	if extra, _ := reflect.ValueOf(p).Elem().FieldByName("Extra").Interface().(Extra); len(extra) > 0 {
		return nil, fmt.Errorf("decode %s v%d: members %s are not defined", d.Kind, d.Version, extra)
	}
	again, err := Encode(p)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, data) {
		return nil, fmt.Errorf("decode %s v%d: the bytes are not in the form that Encode writes", d.Kind, d.Version)
	}
	return p, nil
}

// Digest is the hexadecimal SHA-256 by which one event names another's
// payload.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
