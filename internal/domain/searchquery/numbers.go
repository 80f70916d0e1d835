package searchquery

import (
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxNumber is the maximum length of a number, in bytes. Longer values do not count as numbers.
const maxNumber = 40

// parseNumber parses a number or a Kubernetes quantity, such as 3, -1.5, 250m or 2Gi.
//
// It rejects numbers with an exponent of three or more digits, because comparing such quantities takes
// time and memory in proportion to their value.
func parseNumber(text string) (resource.Quantity, bool) {
	if text == "" || len(text) > maxNumber || !strings.ContainsRune("+-.0123456789", rune(text[0])) {
		return resource.Quantity{}, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-")) > 2 {
		return resource.Quantity{}, false
	}
	quantity, err := resource.ParseQuantity(text)
	return quantity, err == nil
}

// parseAge parses a duration such as 90s, 1h30m or 7d. A day has 24 hours, and a year has 365 days.
func parseAge(text string) (time.Duration, bool) {
	units := map[byte]time.Duration{
		's': time.Second, 'm': time.Minute, 'h': time.Hour,
		'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour, 'y': 365 * 24 * time.Hour,
	}
	var age time.Duration
	for rest := text; rest != ""; {
		end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if end <= 0 {
			return 0, false
		}
		number, err := strconv.ParseInt(rest[:end], 10, 64)
		unit, isUnit := units[rest[end]]
		if err != nil || !isUnit || number > (math.MaxInt64-int64(age))/int64(unit) {
			return 0, false
		}
		age += time.Duration(number) * unit
		rest = rest[end+1:]
	}
	return age, text != ""
}
