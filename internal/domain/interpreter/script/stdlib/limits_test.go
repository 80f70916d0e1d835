package stdlib_test

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib/stdlibtest"
)

// TestFunctionsEndAtTheLimits runs each function with arguments that would take much time or memory.
func TestFunctionsEndAtTheLimits(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"string.rep of a huge string":                {`return string.rep("x", 1e12)`, "the string is too long"},
		"string.rep whose length overflows":          {`return string.rep("xxxxxxxxxxxxxxxx", 2^62)`, "the string is too long"},
		"string.rep with an infinite count":          {`return string.rep("x", math.huge)`, "the string is too long"},
		"gsub with a long replacement":               {`return (string.rep("x", 1000):gsub("x", string.rep("y", 1000)))`, "the string is too long"},
		"gsub with %0 many times":                    {`return (string.rep("x", 10000):gsub(".*", string.rep("%0", 1000)))`, "the string is too long"},
		"gsub with a function":                       {`local s = string.rep("y", 1000) return (string.rep("x", 1000):gsub("x", function() return s end))`, "the string is too long"},
		"gsub with a table":                          {`return (string.rep("x", 1000):gsub("x", {x = string.rep("y", 1000)}))`, "the string is too long"},
		"concat of a long string":                    {`local t = {} for i = 1, 1000 do t[i] = string.rep("x", 1000) end return table.concat(t)`, "the string is too long"},
		"concat with a long separator":               {`local t = {} for i = 1, 1000 do t[i] = 1 end return table.concat(t, string.rep("x", 1000))`, "the string is too long"},
		"format of a long string":                    {`local s = string.rep("x", 1000) return string.format(string.rep("%s", 200), unpack((function() local t = {} for i = 1, 200 do t[i] = s end return t end)()))`, "the string is too long"},
		"print of a long line":                       {`local s = string.rep("x", 60000) print(s, s)`, "the string is too long"},
		"os.date with a long format":                 {`return os.date(string.rep("%c", 30000))`, "the string is too long"},
		"many strings":                               {`local t = {} for i = 1, 1e9 do t[1] = string.rep("x", 60000) end`, "too much memory"},
		"many parts of a string":                     {`local s = string.rep("x", 1000) while true do local a = string.sub(s, 2) end`, "too much memory"},
		"many iterators":                             {`while true do string.gmatch("a", "a") end`, "too much memory"},
		"a long pattern":                             {`local p = string.rep("x", 60000) for i = 1, 2 do string.find("a", p .. "*") end`, "too much memory"},
		"an exponential pattern":                     {`return string.find(string.rep("a", 1000), string.rep("a-", 30) .. "b")`, "too many steps"},
		"an exponential pattern with captures":       {`return string.match(string.rep("a", 1000), string.rep("(a*)", 20) .. "b")`, "too many steps"},
		"an exponential pattern in gsub":             {`return string.gsub(string.rep("a", 1000), string.rep("a?", 100) .. string.rep("a", 100) .. "b", "")`, "too many steps"},
		"an exponential pattern in gmatch":           {`for _ in string.gmatch(string.rep("a", 1000), string.rep("a*", 30) .. "b") do end`, "too many steps"},
		"an exponential pattern in pcall":            {`while true do pcall(string.find, string.rep("a", 1000), string.rep("a-", 30) .. "b") end`, "too many steps"},
		"quadratic searches of %b":                   {`return string.find(string.rep("(", 60000), "%b()")`, "too many steps"},
		"insert far after the end":                   {`table.insert({}, 67000000, 1)`, "too much memory"},
		"insert of many values":                      {`local t = {} while true do table.insert(t, 1) end`, "too much memory"},
		"insert before many values":                  {`local t = {} for i = 1, 1e9 do table.insert(t, 1, 1) end`, "too m"},
		"unpack of many values":                      {`return unpack({}, 1, 1e9)`, "too many results"},
		"unpack of all integers":                     {`return unpack({}, -math.huge, math.huge)`, "too many results"},
		"string.byte of a long string":               {`return string.byte(string.rep("x", 60000), 1, -1)`, "too many results"},
		"sort of a long table of long equal strings": {`local t, s = {}, string.rep("x", 60000) for i = 1, 3000 do t[i] = s end while true do table.sort(t) end`, "too m"},
		"foreach that calls itself":                  {`local function f(t) table.foreach({1}, f) end f()`, "stack overflow"},
		"gsub that calls itself":                     {`local function f() return (string.gsub("a", "a", f)) end f()`, "stack overflow"},
		"pcall that calls itself":                    {`local function f() local ok, err = pcall(f) if not ok then error(err, 0) end end f()`, "stack overflow"},
		"sort that calls itself":                     {`local function f() table.sort({1, 2, 3}, f) end f()`, "stack overflow"},
		"tracebacks of tail calls":                   {`local function f(n) if n == 0 then error({}) end return f(n - 1) end while true do pcall(f, 10000) end`, "too many steps"},
		"positions of tail calls":                    {`local function f(n) if n == 0 then error("x", 1000) end return f(n - 1) end while true do pcall(f, 10000) end`, "too many steps"},
		"next over removed entries":                  {`local t = {} for i = 1, 100 do t["k" .. i] = 1 t["k" .. i] = nil end while true do next(t) end`, "too many steps"},
		"texts of many tables":                       {`while true do tostring({}) end`, "too much memory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			host, state := stdlibtest.New()
			defer state.Close()
			host.MaxSteps, host.MaxBytes, host.MaxString = 1<<22, 4<<20, 1<<16
			_, err := stdlibtest.Run(state, test.script)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error %v, want one with %q", test.script, err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "runtime error") {
				t.Errorf("%s: a Go panic: %v", test.script, err)
			}
		})
	}
}

func TestTheEndOfARunCannotBeCaught(t *testing.T) {
	for name, script := range map[string]string{
		"pcall":                   `while true do pcall(string.rep, "x", 1e9) end`,
		"xpcall":                  `while true do xpcall(function() string.rep("x", 1e9) end, function() return 1 end) end`,
		"a handler that fails":    `while true do xpcall(function() string.rep("x", 1e9) end, function() error("again") end) end`,
		"gsub that calls pcall":   `string.gsub("aaa", "a", function() pcall(string.rep, "x", 1e9) end) while true do end`,
		"sort that calls pcall":   `table.sort({3, 2, 1}, function() return (pcall(string.rep, "x", 1e9)) end) while true do end`,
		"pcall as the last call":  `return pcall(string.rep, "x", 1e9)`,
		"pcall in another pcall":  `return pcall(pcall, pcall, string.rep, "x", 1e9)`,
		"a module that was limit": `return pcall(function() return string.rep("x", 1e9) end)`,
	} {
		t.Run(name, func(t *testing.T) {
			host, state := stdlibtest.New()
			defer state.Close()
			host.MaxString, host.MaxSteps = 1000, 1<<20
			if _, err := stdlibtest.Run(state, script); err == nil {
				t.Errorf("the script caught the error and ended without one")
			}
		})
	}
}

func TestSortWithAnInconsistentFunctionEnds(t *testing.T) {
	for name, script := range map[string]string{
		"always less":                       `local t = {} for i = 1, 500 do t[i] = i % 7 end table.sort(t, function() return true end) return #t`,
		"never less":                        `local t = {} for i = 1, 500 do t[i] = i % 7 end table.sort(t, function() return false end) return #t`,
		"less or equal":                     `local t = {} for i = 1, 500 do t[i] = i % 7 end table.sort(t, function(a, b) return a <= b end) return #t`,
		"random":                            `local t = {} for i = 1, 500 do t[i] = i end table.sort(t, function() return math.random(2) == 1 end) return #t`,
		"a function that empties the table": `local t = {} for i = 1, 500 do t[i] = i end table.sort(t, function(a, b) table.remove(t) return a < b end) return #t`,
		"a function that extends the table": `local t = {} for i = 1, 500 do t[i] = i end table.sort(t, function(a, b) if #t < 600 then t[#t + 1] = 0 end return a < b end) return #t - 100`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := evaluate(script); got != "500" {
				t.Errorf("got %s values, want 500: %v", got, err)
			}
		})
	}
}

func TestLazyTablesAreLoadedBeforeTheyAreRead(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"pairs":          {`local n = 0 for k, v in pairs(lazy) do n = n + v end return n`, "60"},
		"ipairs":         {`local n = 0 for i, v in ipairs(lazy) do n = n + v end return n`, "60"},
		"next":           {`return next(lazy)`, "1 10"},
		"unpack":         {`return unpack(lazy)`, "10 20 30"},
		"table.concat":   {`return #table.concat(lazy)`, "6"},
		"table.insert":   {`table.insert(lazy, 40) return lazy[4], lazy[3]`, "40 30"},
		"table.remove":   {`return table.remove(lazy, 1), lazy[1]`, "10 20"},
		"table.sort":     {`table.sort(lazy, function(a, b) return a > b end) return lazy[1]`, "30"},
		"table.getn":     {`return table.getn(lazy)`, "3"},
		"table.maxn":     {`return table.maxn(lazy)`, "3"},
		"table.foreach":  {`local n = 0 table.foreach(lazy, function(_, v) n = n + v end) return n`, "60"},
		"table.foreachi": {`local n = 0 table.foreachi(lazy, function(_, v) n = n + v end) return n`, "60"},
	} {
		t.Run(name, func(t *testing.T) {
			_, state := stdlibtest.New()
			defer state.Close()
			state.SetGlobal("lazy", stdlibtest.LazyTable(func(table *lua.LTable) {
				for i := range 3 {
					table.RawSetInt(i+1, lua.LNumber(10*(i+1)))
				}
			}))
			if got := describe(stdlibtest.Run(state, test.script)); got != test.want {
				t.Errorf("%s: got %s, want %s", test.script, got, test.want)
			}
		})
	}
}
