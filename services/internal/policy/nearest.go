package policy

// nearest returns the known name that takes the fewest edits to reach from word,
// or "" when all are too far to be what the writer meant.
func nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, name := range known {
		if d := editDistance(word, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// editDistance counts the insertions, removals and replacements of one letter
// that turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := diagonal
			if a[i-1] != b[j-1] {
				replace++
			}
			diagonal = row[j]
			row[j] = min(row[j]+1, row[j-1]+1, replace)
		}
	}
	return row[len(b)]
}
