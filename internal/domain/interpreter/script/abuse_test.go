package script

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/breaker"
)

// abuses are scripts that would use all time or all memory of the process.
var abuses = map[string]struct {
	script, want string
	// isSlow reports whether each step of the script takes long. Then the clock advances faster.
	isSlow bool
}{
	"an endless loop":                       {script: `while true do end`, want: "time limit"},
	"an endless repetition":                 {script: `repeat until false`, want: "time limit"},
	"an endless goto":                       {script: `::a:: goto a`, want: "time limit"},
	"an endless tail recursion":             {script: `local function f() return f() end f()`, want: "time limit"},
	"an endless loop at the top":            {script: `end while true do end function f()`, want: "time limit"},
	"an endless loop of protected calls":    {script: `while true do pcall(error, "x") end`, want: "limit", isSlow: true},
	"caught limits":                         {script: `local function f() while true do pcall(f) end end f()`, want: "time limit", isSlow: true},
	"caught limits in a handler":            {script: `while true do xpcall(function() while true do end end, function() while true do end end) end`, want: "time limit"},
	"errors after many tail calls":          {script: `local function f(n) if n == 0 then error("x") end return f(n - 1) end while true do pcall(f, 100000) end`, want: "time limit"},
	"deep recursion":                        {script: `local function f() return 1 + f() end f()`, want: "stack overflow"},
	"deep recursion through pcall":          {script: `local function f() pcall(f) end while true do f() end`, want: "time limit", isSlow: true},
	"deep recursion through sort":           {script: `local function f() table.sort({1, 2, 3}, function(a, b) f() return a < b end) end f()`, want: "stack overflow"},
	"a string that grows":                   {script: `local s = "x" while true do s = s .. s end`, want: "limit of 1 MiB for one string"},
	"strings that are kept":                 {script: `local t, s = {}, ("x"):rep(100000) while true do t[#t + 1] = s .. #t end`, want: "memory limit"},
	"a string by rep":                       {script: `local s = ("x"):rep(100000000)`, want: "limit of 1 MiB for one string"},
	"a string by gsub":                      {script: `local s = ("x"):rep(1000) s = s:gsub("x", s):gsub("x", s)`, want: "limit of 1 MiB for one string"},
	"a string by concat":                    {script: `local s, t = ("x"):rep(1000), {} for i = 1, 100000 do t[i] = s end s = table.concat(t)`, want: "limit of 1 MiB for one string"},
	"a string by format":                    {script: `local s = ("x"):rep(1000000) s = string.format("%s%s", s, s)`, want: "limit of 1 MiB for one string"},
	"error messages that are kept":          {script: `local t, s = {}, ("x"):rep(1000000) while true do local _, m = pcall(function() local n; return n[s] end) t[#t + 1] = m end`, want: "memory limit"},
	"many entries":                          {script: `local t = {} for i = 1, 1e9 do t[i] = i end`, want: "memory limit"},
	"many fields":                           {script: `local t = {} for i = 1, 1e9 do t["k" .. i] = i end`, want: "memory limit"},
	"many constant fields":                  {script: `local t = {} while true do local u = {} u.a = 1 u.b = 2 u.c = 3 u.d = 4 t[#t + 1] = u end`, want: "memory limit"},
	"many inserted entries":                 {script: `local t = {} while true do table.insert(t, true) end`, want: "limit"},
	"many tables":                           {script: `local t while true do t = {t} end`, want: "memory limit"},
	"many tables with fields":               {script: `local t while true do t = {next = t, other = 1} end`, want: "memory limit"},
	"many functions":                        {script: `local t while true do local u = t t = function() return u end end`, want: "limit"},
	"many tables of arguments":              {script: `local big, t = {}, {} for i = 1, 7000 do big[i] = i end local function f(...) return arg end while true do t[#t + 1] = f(unpack(big)) end`, want: "memory limit"},
	"many tables of values":                 {script: `local big, t = {}, {} for i = 1, 7000 do big[i] = i end while true do t[#t + 1] = {unpack(big)} end`, want: "memory limit"},
	"keys that are removed again":           {script: `local t = {} local i = 0 while true do i = i + 1 t["k" .. i] = i t["k" .. i] = nil end`, want: "memory limit"},
	"a sparse index":                        {script: `local t = {} t[60000000] = 1`, want: "memory limit"},
	"a sparse index in a constructor":       {script: `local t = {[60000000] = 1}`, want: "memory limit"},
	"a sparse index by insert":              {script: `local t = {} table.insert(t, 60000000, 1)`, want: "memory limit"},
	"many sparse indexes":                   {script: `local t = {} while true do t[#t + 1] = {[1000] = 1} end`, want: "memory limit"},
	"too many values":                       {script: `local t = {} for i = 1, 1000000 do t[i] = i end return unpack(t)`, want: ""},
	"too many arguments":                    {script: `local function f(...) return f(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...) end f()`, want: "at once"},
	"an exponential pattern":                {script: `return ("a"):rep(1000):find(("a*"):rep(30) .. "b")`, want: "time limit"},
	"a pattern on a long string":            {script: `local s = ("a"):rep(1000000) for i = 1, 1000 do s:find(".-b") end`, want: "time limit"},
	"the end of a list with many holes":     {script: `local t = {} for i = 1, 200000 do t[i] = 1 end for i = 200000, 1, -1 do t[i] = nil end while true do local n = #t end`, want: "time limit", isSlow: true},
	"the end of a list after a gap":         {script: `local t = {1} table.insert(t, 400000, 1) t[400000] = nil for i = 1, 2000 do local n = #t end`, want: "time limit", isSlow: true},
	"comparisons of long strings":           {script: `local a, b = ("a"):rep(100000) .. "1", ("a"):rep(100000) .. "2" while true do local x = a < b end`, want: "time limit", isSlow: true},
	"a comparison function without order":   {script: `local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t, function() return true end) end`, want: "time limit"},
	"an exponential shared result":          {script: `local t = {} for i = 1, 40 do t = {t, t} end return t`, want: "more than 100000 values"},
	"a result that contains itself":         {script: `local t = {} t.a = {b = t} return t`, want: "value at a.b of the result contains itself"},
	"a result that is nested deeply":        {script: `local t = {} for i = 1, 1000 do t = {t} end return t`, want: "nested deeper than 200 levels"},
	"a large result":                        {script: `local t = {} for i = 1, 200000 do t[i] = i end return {t = t}`, want: "more than 100000 values"},
	"an empty table with a long path":       {script: `local t = {} for i = 1, 1000 do t["k" .. i] = {{}, {}} end return t`, want: "-"},
	"libraries that are read again":         {script: `local t = {} while true do t[#t + 1] = {package, string} package, string = nil, nil end`, want: "memory limit"},
	"many dates":                            {script: `local t = {} while true do t[#t + 1] = os.date("*t") end`, want: "memory limit"},
	"a string at many places":               {script: `local s, t = ("x"):rep(1000000), {} for i = 1, 200 do t[i] = s end return {t = t}`, want: "memory limit"},
	"a name at many places":                 {script: `local s, t = ("x"):rep(1000000), {} for i = 1, 200 do t[i] = {[s] = 1} end return {t = t}`, want: "memory limit"},
	"empty tables with a large path":        {script: `local s, t = ("x"):rep(1000000), {} for i = 1, 256 do t[i] = {} end for i = 1, 190 do t = {[s] = t} end return t`, want: "memory limit"},
	"a field of the object at many places":  {script: `local t = {} for i = 1, 90000 do t[i] = obj.big end return {t = t}`, want: "more than 100000 values"},
	"a changed field at many places":        {script: `local t = {} obj.big[1] = 7 for i = 1, 90000 do t[i] = obj end return {t = t}`, want: "more than 100000 values"},
	"tolerations at many places":            {script: `local t = {} for i = 1, 90000 do t[i] = obj end require("kube").accuratePodRequirements({spec = {tolerations = t}})`, want: "more than 100000 values"},
	"a large error":                         {script: `error(("x"):rep(1000000))`, want: "line 2: xxx"},
	"an error that is a table":              {script: `error({})`, want: "raised an error that is a table"},
	"the metatable of an object":            {script: `return getmetatable(obj)`, want: "call function getmetatable is not supported"},
	"a forbidden function":                  {script: `loadstring("return 1")`, want: "call function loadstring is not supported"},
	"a library that scripts do not have":    {script: `io.write("x")`, want: "attempt to index a nil value (variable 'io') with key 'write'"},
	"a module that scripts do not have":     {script: `require("os")`, want: "module 'os' not found"},
	"random numbers and sorted large lists": {script: `local t = {} for i = 1, 100000 do t[i] = math.random() end while true do table.sort(t) end`, want: "time limit"},
}

func TestAbuseEndsWithAnErrorAndWithoutItsMemory(t *testing.T) {
	const limit = time.Second
	for name, abuse := range abuses {
		t.Run(name, func(t *testing.T) {
			// With this clock, a run has about 2.5 million steps.
			step := 100 * time.Microsecond
			if abuse.isSlow {
				step = 2 * time.Millisecond
			}
			clock := newClock(step)
			engine := mustNewEngine(t, Options{Now: clock.now, Limits: Limits{Time: limit, Memory: 16 << 20}})
			rules := rulesOf(engine, configv1alpha1.InterpreterOperationInterpretStatus, "function ReflectStatus(obj)\n"+abuse.script+"\nend")
			object := objectOf(t, `{"metadata":{"name":"web"},"big":[`+strings.Repeat("1,", 1000)+`1]}`)
			before, start := heap(), clock.now()
			status, err := rules.ReflectStatus(context.Background(), object)
			if elapsed := clock.now().Sub(start); elapsed > 2*limit {
				t.Errorf("the call took %s", elapsed)
			}
			after := heap()
			if abuse.want == "-" {
				return
			}
			if err == nil || !strings.Contains(err.Error(), abuse.want) || len(err.Error()) > 2*maxMessage {
				t.Fatalf("status = %v, err = %v, want %q", status, err, abuse.want)
			}
			if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 4<<20 {
				t.Errorf("%d MiB are kept", kept>>20)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}

func heap() runtime.MemStats {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats
}

func TestALimitPausesItsScriptOnly(t *testing.T) {
	clock := newClock(time.Millisecond)
	engine := mustNewEngine(t, Options{Now: clock.now})
	object := objectOf(t, `{}`)
	health := func(script string) error {
		_, err := rulesOf(engine, configv1alpha1.InterpreterOperationInterpretHealth, script).IsHealthy(context.Background(), object)
		return err
	}
	endless := `function InterpretHealth() while true do end end`
	var limit *limitError
	if err := health(endless); !errors.As(err, &limit) || !strings.Contains(err.Error(), "customization workload, InterpretHealth: line 1: the call exceeded the time limit of 1s") {
		t.Fatalf("err = %v", err)
	}
	var paused *breaker.PausedError
	if err := health(endless); !errors.As(err, &paused) || !strings.Contains(err.Error(), "customization workload, InterpretHealth: line 1: the call exceeded the time limit of 1s") {
		t.Fatalf("err = %v, want a pause, also for rules that are created again", err)
	}
	if err := health(`function InterpretHealth() return true end`); err != nil {
		t.Errorf("another script fails: %v", err)
	}
	clock.advance(time.Second)
	if err := health(endless); errors.As(err, &paused) || !errors.As(err, &limit) {
		t.Errorf("err = %v, want another attempt after the pause", err)
	}
}

func TestACanceledCallEndsWithoutAPause(t *testing.T) {
	engine := mustNewEngine(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 2 {
		_, err := rulesOf(engine, configv1alpha1.InterpreterOperationInterpretHealth, `function InterpretHealth() while true do end end`).IsHealthy(ctx, objectOf(t, `{}`))
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("err = %v", err)
		}
	}
}
