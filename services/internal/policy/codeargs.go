package policy

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// codeArg says which arguments of a command are code.
//
//   - "script" marks each argument that is no option, up to and including the first
//     one that does not directly follow an option. Of "bash -e x.sh data" that is
//     x.sh and, as -e could take a value, data. Marking one too many costs a digest;
//     marking one too few would leave a script unpinned.
//   - "operands" marks every argument that is no option.
//   - A number marks the argument at that place, 1 being the first after the program.
type codeArg struct {
	word  string
	place int
}

const (
	codeScript   = "script"
	codeOperands = "operands"
	maxCodePlace = 1000
)

func readCodeArgs(t *table) []codeArg {
	var list []codeArg
	for _, word := range t.texts("code_args") {
		place, err := strconv.Atoi(word)
		if word != codeScript && word != codeOperands && (err != nil || place < 1 || place > maxCodePlace) {
			t.problem(ProblemBadValue, "code_args", fmt.Sprintf("code_args holds %q", word), `write "script", "operands" or a place such as "1"`)
			continue
		}
		list = append(list, codeArg{word: word, place: place})
	}
	return list
}

// indexes returns the places in argv that list marks, ascending and each once.
func indexes(list []codeArg, argv []string) []int {
	marked := map[int]bool{}
	for _, c := range list {
		switch {
		case c.place > 0 && c.place < len(argv):
			marked[c.place] = true
		case c.place == 0:
			markOperands(argv, c.word == codeScript, marked)
		}
	}
	if len(marked) == 0 {
		return nil
	}
	places := make([]int, 0, len(marked))
	for place := range marked {
		places = append(places, place)
	}
	sort.Ints(places)
	return places
}

func markOperands(argv []string, stopAtScript bool, marked map[int]bool) {
	for i := 1; i < len(argv); i++ {
		if option(argv[i]) {
			continue
		}
		marked[i] = true
		if stopAtScript && (i == 1 || !option(argv[i-1]) || argv[i-1] == "--") {
			return
		}
	}
}

// option reports whether an argument reads as an option; a lone "-" is the standard input.
func option(arg string) bool { return len(arg) > 1 && strings.HasPrefix(arg, "-") }
