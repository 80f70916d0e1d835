package script

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// abuses are scripts that would use all time or all memory of the process.
var abuses = map[string]struct {
	script, want string
}{
	"an endless loop":                       {script: `while true do end`, want: "time limit"},
	"an endless repetition":                 {script: `repeat until false`, want: "time limit"},
	"an endless goto":                       {script: `::a:: goto a`, want: "time limit"},
	"an endless tail recursion":             {script: `local function f() return f() end f()`, want: "time limit"},
	"an endless loop at the top":            {script: `end while true do end function f()`, want: "time limit"},
	"an endless loop of protected calls":    {script: `while true do pcall(error, "x") end`, want: "time limit"},
	"caught limits":                         {script: `local function f() while true do pcall(f) end end f()`, want: "time limit"},
	"caught tail recursions":                {script: `local function f() return f() end while true do pcall(f) end`, want: "time limit"},
	"caught limits in a handler":            {script: `while true do xpcall(function() while true do end end, function() while true do end end) end`, want: "time limit"},
	"errors after many tail calls":          {script: `local function f(n) if n == 0 then error("x") end return f(n - 1) end while true do pcall(f, 100000) end`, want: "time limit"},
	"deep recursion":                        {script: `local function f() return 1 + f() end f()`, want: "stack overflow"},
	"deep recursion through pcall":          {script: `local function f() pcall(f) end while true do f() end`, want: "time limit"},
	"deep recursion through sort":           {script: `local function f() table.sort({1, 2, 3}, function(a, b) f() return a < b end) end f()`, want: "stack overflow"},
	"a string that grows":                   {script: `local s = "x" while true do s = s .. s end`, want: "limit of 1 MiB for one string"},
	"strings that are kept":                 {script: `local t, s = {}, ("x"):rep(100000) while true do t[#t + 1] = s .. #t end`, want: "limit of 64 MiB in total"},
	"a string by rep":                       {script: `local s = ("x"):rep(100000000)`, want: "limit of 1 MiB for one string"},
	"a string by gsub":                      {script: `local s = ("x"):rep(1000) s = s:gsub("x", s):gsub("x", s)`, want: "limit of 1 MiB for one string"},
	"a string by concat":                    {script: `local s, t = ("x"):rep(1000), {} for i = 1, 100000 do t[i] = s end s = table.concat(t)`, want: "limit of 1 MiB for one string"},
	"a string by format":                    {script: `local s = ("x"):rep(1000000) s = string.format("%s%s", s, s)`, want: "limit of 1 MiB for one string"},
	"error messages that are kept":          {script: `local t, s = {}, ("x"):rep(1000000) while true do local _, m = pcall(function() local n; return n[s] end) t[#t + 1] = m end`, want: "time limit"},
	"many entries":                          {script: `local t = {} for i = 1, 1e9 do t[i] = i end`, want: "time limit"},
	"many fields":                           {script: `local t = {} for i = 1, 1e9 do t["k" .. i] = i end`, want: "time limit"},
	"many constant fields":                  {script: `local t = {} while true do local u = {} u.a = 1 u.b = 2 u.c = 3 u.d = 4 t[#t + 1] = u end`, want: "time limit"},
	"many inserted entries":                 {script: `local t = {} while true do table.insert(t, true) end`, want: "time limit"},
	"many tables":                           {script: `local t while true do t = {t} end`, want: "time limit"},
	"many tables with fields":               {script: `local t while true do t = {next = t, other = 1} end`, want: "time limit"},
	"many functions":                        {script: `local t while true do local u = t t = function() return u end end`, want: "time limit"},
	"many tables of arguments":              {script: `local big, t = {}, {} for i = 1, 7000 do big[i] = i end local function f(...) return arg end while true do t[#t + 1] = f(unpack(big)) end`, want: "time limit"},
	"many tables of values":                 {script: `local big, t = {}, {} for i = 1, 7000 do big[i] = i end while true do t[#t + 1] = {unpack(big)} end`, want: "time limit"},
	"keys that are removed again":           {script: `local t = {} local i = 0 while true do i = i + 1 t["k" .. i] = i t["k" .. i] = nil end`, want: "time limit"},
	"many sparse indexes":                   {script: `local t = {} while true do t[#t + 1] = {[1000] = 1} end`, want: "time limit"},
	"too many arguments":                    {script: `local function f(...) return f(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...) end f()`, want: "registry overflow"},
	"an exponential pattern":                {script: `return ("a"):rep(1000):find(("a*"):rep(30) .. "b")`, want: "time limit"},
	"a pattern on a long string":            {script: `local s = ("a"):rep(1000000) for i = 1, 1000 do s:find(".-b") end`, want: "time limit"},
	"the end of a list with many holes":     {script: `local t = {} for i = 1, 200000 do t[i] = 1 end for i = 200000, 1, -1 do t[i] = nil end while true do local n = #t end`, want: "time limit"},
	"the end of a list after a gap":         {script: `local t = {1} table.insert(t, 100000, 1) t[100000] = nil while true do local n = #t end`, want: "time limit"},
	"comparisons of long strings":           {script: `local a, b = ("a"):rep(100000) .. "1", ("a"):rep(100000) .. "2" while true do local x = a < b end`, want: "time limit"},
	"a comparison function without order":   {script: `local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t, function() return true end) end`, want: "time limit"},
	"an exponential shared result":          {script: `local t = {} for i = 1, 40 do t = {t, t} end return t`, want: "more than 100000 values"},
	"a result that contains itself":         {script: `local t = {} t.a = {b = t} return t`, want: "value at a.b of the result contains itself"},
	"a result that is nested deeply":        {script: `local t = {} for i = 1, 1000 do t = {t} end return t`, want: "nested deeper than 200 levels"},
	"a large result":                        {script: `local t = {} for i = 1, 200000 do t[i] = i end return {t = t}`, want: "more than 100000 values"},
	"libraries that are read again":         {script: `local t = {} while true do t[#t + 1] = {package, string} package, string = nil, nil end`, want: "time limit"},
	"many dates":                            {script: `local t = {} while true do t[#t + 1] = os.date("*t") end`, want: "time limit"},
	"a string at many places":               {script: `local s, t = ("x"):rep(1000000), {} for i = 1, 200 do t[i] = s end return {t = t}`, want: "limit of 8 MiB in total"},
	"a name at many places":                 {script: `local s, t = ("x"):rep(1000000), {} for i = 1, 200 do t[i] = {[s] = 1} end return {t = t}`, want: "limit of 8 MiB in total"},
	"empty tables with a large path":        {script: `local s, t = ("x"):rep(1000000), {} for i = 1, 256 do t[i] = {} end for i = 1, 190 do t = {[s] = t} end return t`, want: "limit of 8 MiB in total"},
	"a field of the object at many places":  {script: `local t = {} for i = 1, 90000 do t[i] = obj.big end return {t = t}`, want: "more than 100000 values"},
	"a changed field at many places":        {script: `local t = {} obj.big[1] = 7 for i = 1, 90000 do t[i] = obj end return {t = t}`, want: "more than 100000 values"},
	"tolerations at many places":            {script: `local t = {} for i = 1, 90000 do t[i] = obj end require("kube").accuratePodRequirements({spec = {tolerations = t}})`, want: "more than 100000 values"},
	"a large error":                         {script: `error(("x"):rep(1000000))`, want: "line 2: xxx"},
	"an error that is a table":              {script: `error({})`, want: "raised an error that is a table"},
	"the metatable of an object":            {script: `return getmetatable(obj)`, want: "call function getmetatable is not supported"},
	"a forbidden function":                  {script: `loadstring("return 1")`, want: "call function loadstring is not supported"},
	"a library that scripts do not have":    {script: `io.write("x")`, want: "attempt to index a nil value with key 'write'"},
	"a module that scripts do not have":     {script: `require("os")`, want: "module 'os' not found"},
	"random numbers and sorted large lists": {script: `local t = {} for i = 1, 100000 do t[i] = math.random() end while true do table.sort(t) end`, want: "time limit"},
}

func TestAbuseEndsWithAnErrorAndWithoutItsMemory(t *testing.T) {
	for name, abuse := range abuses {
		t.Run(name, func(t *testing.T) {
			engine := mustNewEngine(t, Options{})
			engine.timeout = time.Minute
			if strings.HasSuffix(abuse.want, "time limit") {
				engine.timeout = 100 * time.Millisecond
			}
			rules := rulesOf(engine, configv1alpha1.InterpreterOperationInterpretStatus, "function ReflectStatus(obj)\n"+abuse.script+"\nend")
			object := objectOf(t, `{"metadata":{"name":"web"},"big":[`+strings.Repeat("1,", 1000)+`1]}`)
			before, start := heap(), time.Now()
			status, err := rules.ReflectStatus(context.Background(), object)
			elapsed := time.Since(start)
			after := heap()
			if elapsed > engine.timeout+10*time.Second {
				t.Errorf("the call took %s", elapsed)
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
	clock := newClock(0)
	engine := mustNewEngine(t, Options{Now: clock.now})
	engine.timeout = 10 * time.Millisecond
	object := objectOf(t, `{}`)
	health := func(script string) error {
		_, err := rulesOf(engine, configv1alpha1.InterpreterOperationInterpretHealth, script).IsHealthy(context.Background(), object)
		return err
	}
	endless := `function InterpretHealth() while true do end end`
	var limit *timeoutError
	if err := health(endless); !errors.As(err, &limit) || !strings.Contains(err.Error(), "customization workload, InterpretHealth: line 1: the call exceeded the time limit of 10ms") {
		t.Fatalf("err = %v", err)
	}
	var paused *interpreter.PausedError
	if err := health(endless); !errors.As(err, &paused) || !strings.Contains(err.Error(), "customization workload, InterpretHealth: line 1: the call exceeded the time limit of 10ms") {
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
