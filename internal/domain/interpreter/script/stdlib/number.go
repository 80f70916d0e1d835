package stdlib

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// smallNumbers are the integers from 0 on, which need no allocation.
var smallNumbers = newSmallNumbers()

func newSmallNumbers() (values [257]lua.LValue) {
	for i := range values {
		values[i] = lua.LNumber(i)
	}
	return values
}

func integer(n int) lua.LValue {
	if n >= 0 && n < len(smallNumbers) {
		return smallNumbers[n]
	}
	return lua.LNumber(n)
}

const whitespace = " \t\n\v\f\r"

// parseNumber parses a number as Lua does: a decimal number or a hexadecimal integer, with white
// space around it.
func parseNumber(s string) (float64, bool) {
	s = strings.Trim(s, whitespace)
	digits, sign := s, 1.0
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		if digits[0] == '-' {
			sign = -1
		}
		digits = digits[1:]
	}
	if len(digits) > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') {
		number, ok := parseInteger(digits[2:], 16)
		return sign * number, ok
	}
	for i := range len(digits) {
		// ParseFloat also accepts underscores, names of infinities and hexadecimal fractions.
		if char := digits[i]; (char < '0' || char > '9') && !strings.ContainsRune(".eE+-", rune(char)) {
			return 0, false
		}
	}
	number, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(number, 0) {
		return 0, false
	}
	return number, true
}

// parseInteger parses digits in a base from 2 to 36.
func parseInteger(digits string, base int) (float64, bool) {
	number := 0.0
	for i := range len(digits) {
		digit := base
		switch char := digits[i]; {
		case char >= '0' && char <= '9':
			digit = int(char - '0')
		case char >= 'a' && char <= 'z':
			digit = int(char-'a') + 10
		case char >= 'A' && char <= 'Z':
			digit = int(char-'A') + 10
		}
		if digit >= base {
			return 0, false
		}
		number = number*float64(base) + float64(digit)
	}
	return number, digits != ""
}

// baseToNumber is tonumber(value [, base]). Unlike gopher-lua, it accepts exponents without a
// fraction, such as 1e3.
func baseToNumber(state *lua.LState) int {
	value := checkAny(state, 1)
	base := optInteger(state, 2, 10)
	if base < 2 || base > 36 {
		state.ArgError(2, "base out of range")
	}
	if _, ok := value.(lua.LNumber); ok && base == 10 {
		state.Push(value)
		return 1
	}
	if _, ok := value.(lua.LString); !ok && base == 10 {
		state.Push(lua.LNil)
		return 1
	}
	digits := checkString(state, 1)
	HostOf(state).Step(1 + len(digits)/stepBytes)
	number, ok := parseBase(digits, base)
	if !ok {
		state.Push(lua.LNil)
		return 1
	}
	state.Push(lua.LNumber(number))
	return 1
}

func parseBase(digits string, base int) (float64, bool) {
	if base == 10 {
		return parseNumber(digits)
	}
	digits = strings.Trim(digits, whitespace)
	sign := 1.0
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		if digits[0] == '-' {
			sign = -1
		}
		digits = digits[1:]
	}
	if base == 16 && len(digits) > 2 && (digits[:2] == "0x" || digits[:2] == "0X") {
		digits = digits[2:]
	}
	number, ok := parseInteger(digits, base)
	return sign * number, ok
}
