package stdlib

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Math returns the functions of the library math by name.
func Math() map[string]lua.LGFunction {
	functions := map[string]lua.LGFunction{
		"atan2":      binary(math.Atan2),
		"fmod":       binary(math.Mod),
		"frexp":      mathFrexp,
		"ldexp":      mathLdexp,
		"max":        mathMax,
		"min":        mathMin,
		"mod":        binary(math.Mod), // the name of fmod in Lua 5.0
		"modf":       mathModf,
		"pow":        binary(math.Pow),
		"random":     mathRandom,
		"randomseed": mathRandomseed,
	}
	for name, function := range map[string]func(float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil,
		"cos": math.Cos, "cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "log": math.Log,
		"log10": math.Log10, "sin": math.Sin, "sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan,
		"tanh": math.Tanh,
		"deg":  func(x float64) float64 { return x * 180 / math.Pi },
		"rad":  func(x float64) float64 { return x * math.Pi / 180 },
	} {
		functions[name] = unary(function)
	}
	return functions
}

// MathValues returns the constants of the library math by name.
func MathValues() map[string]lua.LValue {
	return map[string]lua.LValue{"huge": lua.LNumber(math.Inf(1)), "pi": lua.LNumber(math.Pi)}
}

func unary(function func(float64) float64) lua.LGFunction {
	return func(state *lua.LState) int {
		state.Push(lua.LNumber(function(checkNumber(state, 1))))
		return 1
	}
}

func binary(function func(float64, float64) float64) lua.LGFunction {
	return func(state *lua.LState) int {
		state.Push(lua.LNumber(function(checkNumber(state, 1), checkNumber(state, 2))))
		return 1
	}
}

func mathFrexp(state *lua.LState) int {
	fraction, exponent := math.Frexp(checkNumber(state, 1))
	state.Push(lua.LNumber(fraction))
	state.Push(lua.LNumber(exponent))
	return 2
}

func mathLdexp(state *lua.LState) int {
	// Larger exponents have the same results.
	exponent := min(max(checkInteger(state, 2), -10000), 10000)
	state.Push(lua.LNumber(math.Ldexp(checkNumber(state, 1), exponent)))
	return 1
}

func mathModf(state *lua.LState) int {
	number := checkNumber(state, 1)
	whole, fraction := math.Modf(number)
	if math.IsInf(number, 0) {
		fraction = 0
	}
	state.Push(lua.LNumber(whole))
	state.Push(lua.LNumber(fraction))
	return 2
}

func mathMax(state *lua.LState) int {
	return extreme(state, func(a, b float64) bool { return a > b })
}

func mathMin(state *lua.LState) int {
	return extreme(state, func(a, b float64) bool { return a < b })
}

// extreme pushes the argument that beats all arguments before it.
func extreme(state *lua.LState, beats func(a, b float64) bool) int {
	HostOf(state).Step(state.GetTop() / stepEntries)
	best := checkNumber(state, 1)
	for i := 2; i <= state.GetTop(); i++ {
		if number := checkNumber(state, i); beats(number, best) {
			best = number
		}
	}
	state.Push(lua.LNumber(best))
	return 1
}

// random is the generator of math.random (splitmix64). It starts equal in every run, so that the
// result of a script depends on its arguments only.
type random struct{ state uint64 }

func (r *random) next() float64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// mathRandom is random([[first,] last]).
func mathRandom(state *lua.LState) int {
	number := HostOf(state).State().random.next()
	first, last := 1, 0
	switch state.GetTop() {
	case 0:
		state.Push(lua.LNumber(number))
		return 1
	case 1:
		last = checkInteger(state, 1)
	case 2:
		first, last = checkInteger(state, 1), checkInteger(state, 2)
	default:
		state.RaiseError("wrong number of arguments")
	}
	if first > last {
		state.ArgError(state.GetTop(), "interval is empty")
	}
	result := float64(first) + math.Floor(number*(float64(last)-float64(first)+1))
	state.Push(lua.LNumber(min(result, float64(last))))
	return 1
}

func mathRandomseed(state *lua.LState) int {
	HostOf(state).State().random.state = uint64(checkInteger(state, 1))
	return 0
}
