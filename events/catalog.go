package events

import (
	"encoding/json/jsontext"
	"reflect"
	"slices"
)

// Def is one line of the catalogue: a kind at one version.
type Def struct {
	Kind    Kind
	Version int    // starts at 1, no holes
	When    string // exactly when it happens, in the past tense
	Type    reflect.Type
}

// Extra keeps the members of a payload that this version does not know, so
// that a newer writer's event survives an older reader.
type Extra = jsontext.Value

func define[T any](k Kind, version int, when string) Def {
	return Def{Kind: k, Version: version, When: when, Type: reflect.TypeFor[T]()}
}

// Catalog joins the families. The order is the order of the documents.
func Catalog() []Def {
	return slices.Concat(proposalKinds, jobKinds, askKinds, grantKinds, policyKinds, trustKinds, workerKinds, auditKinds, gapKinds, epochKinds, loopKinds, roundKinds, workKinds, stopKinds, alertKinds, hostKinds, textKinds)
}

// The catalogue by what is looked up at each event, only read.
var byLine, byType = indexed()

func indexed() (map[line]Def, map[reflect.Type]Def) {
	lines, types := map[line]Def{}, map[reflect.Type]Def{}
	for _, d := range Catalog() {
		lines[line{d.Kind, d.Version}], types[d.Type] = d, d
	}
	return lines, types
}

type line struct {
	kind    Kind
	version int
}

// Find returns the catalogue line of a kind at a version.
func Find(k Kind, version int) (Def, bool) {
	d, ok := byLine[line{k, version}]
	return d, ok
}

// currentOf returns the catalogue line that a payload type belongs to.
func currentOf(t reflect.Type) (Def, bool) {
	d, ok := byType[t]
	return d, ok
}

// derefType is the struct type of a payload given by value or by pointer.
func derefType(payload any) reflect.Type {
	t := reflect.TypeOf(payload)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
