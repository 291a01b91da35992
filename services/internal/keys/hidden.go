package keys

// hidden holds a secret so that fmt cannot print it. Of a function fmt shows the
// address, whatever the verb; unexported fields and pointers are no such
// protection, since fmt reads the former by reflection and, for a verb that does
// not fit, follows the latter.
type hidden[T any] func() T

func hide[T any](secret T) hidden[T] { return func() T { return secret } }
