package config

import (
	"fmt"
	"maps"
	"slices"
)

// Set holds every table [name.X] of a file by its X. Its tables begin with the
// defaults and are validated one by one.
type Set[T any] struct {
	Default func() T
	Tables  map[string]*T
}

// family is a Set of any struct.
type family interface {
	fresh() any
	put(name string, table any)
	get(name string) any
	names() []string
}

func (s *Set[T]) fresh() any {
	t := s.Default()
	return &t
}

func (s *Set[T]) put(name string, table any) {
	if s.Tables == nil {
		s.Tables = map[string]*T{}
	}
	s.Tables[name] = table.(*T)
}

func (s *Set[T]) get(name string) any { return s.Tables[name] }

func (s *Set[T]) names() []string { return slices.Sorted(maps.Keys(s.Tables)) }

// Validate checks every table.
func (s *Set[T]) Validate() error {
	for _, name := range s.names() {
		if v, ok := s.get(name).(Validator); ok {
			if err := v.Validate(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}
