package stdlib_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib/stdlibtest"
)

// describe returns the results of a script in the notation of testdata/reference.txt.
func describe(results []lua.LValue, err error) string {
	if err != nil {
		return "!"
	}
	var texts []string
	for _, result := range results {
		switch result := result.(type) {
		case lua.LString:
			texts = append(texts, fmt.Sprintf("'%x'", string(result)))
		case lua.LNumber:
			texts = append(texts, describeNumber(float64(result)))
		default:
			texts = append(texts, result.String())
		}
	}
	return strings.Join(texts, " ")
}

// describeNumber formats a number as %.17g does in C.
func describeNumber(number float64) string {
	text := strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(number, 'g', 17, 64), "+"))
	if text == "-0" {
		return "0"
	}
	return text
}

// evaluate runs a script and returns its results, or its error.
func evaluate(script string) (string, error) {
	host, state := stdlibtest.New()
	defer state.Close()
	host.MaxSteps = 1 << 22
	results, err := stdlibtest.Run(state, script)
	return describe(results, err), err
}

func TestResultsEqualThoseOfTheReferenceImplementation(t *testing.T) {
	reference, err := os.ReadFile("testdata/reference.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(reference)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		mark := strings.LastIndex(line, " => ")
		script, want := line[:mark], line[mark+len(" => "):]
		if got, err := evaluate(script); got != want {
			t.Errorf("%s\n got %s (%v)\nwant %s", script, got, err, want)
		}
	}
}

// evaluateGopher runs a script with the libraries of gopher-lua. These libraries have no limits, so
// the script must be harmless.
func evaluateGopher(script string) (string, error) {
	state := lua.NewState()
	defer state.Close()
	results, err := stdlibtest.Run(state, script)
	return describe(results, err), err
}

// TestDifferencesFromGopherLua lists the cases in which scripts that were written for gopher-lua see
// a difference. The reason is in the name.
func TestDifferencesFromGopherLua(t *testing.T) {
	tests := map[string]struct{ script, gopher, want string }{
		"string.byte returns one byte by default: the default of the last position is the first":          {`return string.byte("abc")`, "97 98 99", "97"},
		"string.upper leaves bytes alone that are not ASCII, as the locale C":                             {`return string.upper("é")`, "'c389'", "'c3a9'"},
		"string.char refuses numbers that are no bytes":                                                   {`return string.char(256)`, "'00'", "!"},
		"string.find with an empty pattern respects the position":                                         {`return string.find("abc", "", 3)`, "1 0", "3 2"},
		"string.find after the end is no Go panic":                                                        {`return string.find("abc", "b", 9, true)`, "!", "nil"},
		"string.match without a match returns nil, not no value":                                          {`return select("#", string.match("a", "b"))`, "0", "1"},
		"string.gmatch matches ^ itself, because an anchor would prevent the iteration":                   {`local n = 0 for _ in string.gmatch("aaa", "^a") do n = n + 1 end return n`, "1", "0"},
		"%f is the frontier pattern of the implementation of Lua":                                         {`return string.find("THE (quick)", "%f[%a]%a+")`, "nil", "1 3"},
		"a pattern that ends with % is malformed":                                                         {`return string.find("a", "%")`, "nil", "!"},
		"%b needs two characters":                                                                         {`return string.find("a(b", "%b(")`, "nil", "!"},
		"a reference to a capture that is open is malformed":                                              {`return string.find("aa", "(a%1)")`, "!", "!"},
		"string.gsub accepts a number as replacement":                                                     {`return string.gsub("a", "a", 1)`, "!", "'31' 1"},
		"string.gsub refuses a table as replacement of a match":                                           {`return string.gsub("a", "a", function() return {} end)`, "'' 1", "!"},
		"string.gsub keeps the match if the function returns false":                                       {`return string.gsub("a", "a", function() return false end)`, "'61' 1", "'61' 1"},
		"string.format rounds %g to six digits, as printf":                                                {`return string.format("%g", 1/3)`, "'302e33333333333333333333333333333333'", "'302e333333333333'"},
		"string.format knows %u":                                                                          {`return string.format("%u", 7)`, "'25217528696e7436343d3729'", "'37'"},
		"string.format quotes with the escapes of Lua":                                                    {`return string.format("%q", "a\tb")`, `'22615c746222'`, `'2261096222'`},
		"string.format formats a negative number in hexadecimal as its two's complement":                  {`return string.format("%x", -1)`, "'2d31'", "'66666666666666666666666666666666'"},
		"string.format requires an argument for each directive":                                           {`return string.format("%s %s", "a")`, "'6120252173284d495353494e4729'", "!"},
		"string.format bounds widths to two digits":                                                       {`return #string.format("%1000d", 1)`, "1000", "!"},
		"table.concat with a missing value is an error":                                                   {`return table.concat({1, 2}, ",", 1, 3)`, "'312c32'", "!"},
		"table.remove at position 0 removes nothing":                                                      {`local t = {1, 2} table.remove(t, 0) return #t`, "1", "2"},
		"table.maxn finds keys that are no indexes":                                                       {`return table.maxn({1, [2.5] = 1})`, "1", "2.5"},
		"table.foreachi exists":                                                                           {`return table.foreachi({7}, function(_, v) return v end)`, "!", "7"},
		"math.huge is infinite, so that it is larger than any other number":                               {`return math.huge == 1/0`, "false", "true"},
		"math.mod is the old name of math.fmod, with its sign":                                            {`return math.mod(-7, 3)`, "2", "-1"},
		"math.random of an empty interval is an error, not a Go panic":                                    {`return math.random(0)`, "!", "!"},
		"tonumber accepts an exponent without a fraction":                                                 {`return tonumber("1e3")`, "nil", "1000"},
		"tonumber accepts a number with another base as its text":                                         {`return tonumber(10, 16)`, "10", "16"},
		"functions accept numbers as strings, and strings as numbers":                                     {`return string.rep("a", "2"), table.concat({1, 2}, 0)`, "!", "'6161' '313032'"},
		"error with a number adds the position":                                                           {`return select(2, pcall(error, 7)) == 7`, "true", "false"},
		"error with level 2 names the caller":                                                             {"local function f()\nerror('x', 2)\nend\nreturn pcall(function()\nf()\nend)", "false '3c737472696e673e3a323a2078'", "false '3c737472696e673e3a353a2078'"},
		"os.date returns the day of the year":                                                             {`return os.date("!*t", 0).yday`, "0", "1"},
		"os.date returns the day of the week":                                                             {`return os.date("!%a", 0)`, "'6d6f6e'", "'546875'"},
		"os.date formats %c, %x and %X as the locale C":                                                   {`return os.date("!%x", 0)`, "'30302f30302f3030'", "'30312f30312f3730'"},
		"os.time requires day, month and year":                                                            {`return os.time({year = 2024}) ~= nil`, "true", "!"},
		"next continues with the other entries after the array became shorter":                            {`local t = {1, 2, x = 3} table.remove(t) table.remove(t) return next(t, 2)`, "nil", "'78' 3"},
		"a function that scripts must not call is an error":                                               {`return pcall(collectgarbage) == false`, "false", "true"},
		"select with an index below the first is an error":                                                {`return select(-3, 1)`, "!", "!"},
		"table.insert with too many arguments is an error":                                                {`table.insert({}, 1, 2, 3)`, "", "!"},
		"unpack with more values than a function can return is an error, before the registry overflows":   {`return unpack({}, 1, 1e8)`, "!", "!"},
		"string.rep accepts a negative count":                                                             {`return string.rep("a", -1)`, "''", "''"},
		"the text of large integers has all digits, as quantities of memory need (Lua rounds to 14)":      {`return tostring(1099511627776000)`, "'31303939353131363237373736303030'", "'31303939353131363237373736303030'"},
		"string.format accepts values of all types for %s, as existing scripts may expect (Lua does not)": {`return string.format("%s %s", nil, true)`, "'6e696c2074727565'", "'6e696c2074727565'"},
		"string.gsub keeps % before other characters, as existing scripts may expect (Lua drops it)":      {`return string.gsub("a.b", "%.", "%.")`, "'61252e62' 1", "'61252e62' 1"},
		"assert adds the position, as existing users may expect (Lua does not)":                           {`return select(2, pcall(function() assert(false, "m") end))`, "'3c737472696e673e3a313a206d'", "'3c737472696e673e3a313a206d'"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := evaluateGopher(test.script); got != test.gopher {
				t.Errorf("gopher-lua: %s\n got %s (%v)\nwant %s", test.script, got, err, test.gopher)
			}
			if got, err := evaluate(test.script); got != test.want {
				t.Errorf("%s\n got %s (%v)\nwant %s", test.script, got, err, test.want)
			}
		})
	}
}
