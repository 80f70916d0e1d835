package script

import "math"

// maxExact is the largest integer up to which every integer has a float64 of its own. The next one
// is also the nearest float64 of the integer after it.
const maxExact = 1<<53 - 1

// integers are the integers that a script has read and that a number of Lua does not represent
// exactly.
type integers struct {
	exact map[float64]int64
	// ambiguous are numbers that represent several of the integers.
	ambiguous map[float64]struct{}
}

func (i *integers) reset() {
	i.exact, i.ambiguous = nil, nil
}

// remember stores an integer that a script reads.
func (i *integers) remember(integer int64) {
	if -maxExact <= integer && integer <= maxExact {
		return
	}
	number := float64(integer)
	known, ok := i.exact[number]
	switch {
	case !ok:
		if i.exact == nil {
			i.exact = map[float64]int64{}
		}
		i.exact[number] = integer
	case known != integer:
		if i.ambiguous == nil {
			i.ambiguous = map[float64]struct{}{}
		}
		i.ambiguous[number] = struct{}{}
	}
}

// value returns a number of Lua as int64 if it is an integer, and as float64 otherwise.
func (i *integers) value(number float64) any {
	if exact, ok := i.exact[number]; ok {
		if _, isAmbiguous := i.ambiguous[number]; !isAmbiguous {
			return exact
		}
	}
	// Both limits are exact as float64.
	if number == math.Trunc(number) && number >= math.MinInt64 && number < math.MaxInt64 {
		return int64(number)
	}
	return number
}

// integerOf returns the integer of any integer type.
func integerOf(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case int:
		return int64(value), true
	case int32:
		return int64(value), true
	}
	return 0, false
}
