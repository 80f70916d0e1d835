package stdlib

import (
	"fmt"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// OS returns the functions of the library os by name: time and date.
func OS() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{"date": osDate, "time": osTime}
}

const (
	// dateBytes is the size of a table with a date: its map has room for 32 fields.
	dateBytes = 4096
	// maxField bounds the fields of a date, so that the calculation does not overflow.
	maxField = 1 << 40
	// maxYear bounds the years of dates.
	maxYear = 1 << 20
	// maxSeconds bounds the times that can be formatted. They lie before the year 33 000.
	maxSeconds = 1e12
)

// osTime is time([date]). It returns seconds since 1970.
func osTime(state *lua.LState) int {
	now := HostOf(state).Now()
	if state.Get(1) == lua.LNil {
		state.Push(lua.LNumber(now.Unix()))
		return 1
	}
	table := checkTable(state)
	year := dateField(state, table, "year", nil)
	if year < -maxYear || year > maxYear {
		state.RaiseError("field 'year' is out of range in date table")
	}
	noon, zero := 12, 0
	// The seconds are added afterwards, because their number may be large.
	date := time.Date(year, time.Month(dateField(state, table, "month", nil)), dateField(state, table, "day", nil), 0, 0, 0, 0, now.Location())
	date = time.Date(date.Year(), date.Month(), date.Day(), dateField(state, table, "hour", &noon), dateField(state, table, "min", &zero),
		dateField(state, table, "sec", &zero), 0, now.Location())
	state.Push(lua.LNumber(date.Unix()))
	return 1
}

// dateField returns a field of a date. Without a default, the field is required.
func dateField(state *lua.LState, table *lua.LTable, name string, missing *int) int {
	var number int
	switch value := table.RawGetString(name).(type) {
	case lua.LNumber:
		number = integerOf(float64(value))
	case lua.LString:
		parsed, ok := parseNumber(string(value))
		if !ok {
			state.RaiseError("field '%s' is no number in date table", name)
		}
		number = integerOf(parsed)
	default:
		if missing == nil {
			state.RaiseError("field '%s' missing in date table", name)
			return 0
		}
		number = *missing
	}
	if number < -maxField || number > maxField {
		state.RaiseError("field '%s' is out of range in date table", name)
	}
	return number
}

// osDate is date([format [, time]]).
func osDate(state *lua.LState) int {
	host := HostOf(state)
	format := optString(state, 1, "%c")
	date := host.Now()
	if state.Get(2) != lua.LNil {
		seconds := checkInteger(state, 2)
		if seconds < -maxSeconds || seconds > maxSeconds {
			state.ArgError(2, "time is out of range")
		}
		date = time.Unix(int64(seconds), 0).In(date.Location())
	}
	if rest, ok := strings.CutPrefix(format, "!"); ok {
		format, date = rest, date.UTC()
	}
	if strings.HasPrefix(format, "*t") {
		state.Push(dateTable(host, date))
		return 1
	}
	host.Step(1 + len(format))
	result := text{host: host}
	result.reserve(len(format))
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i == len(format)-1 {
			result.writeByte(format[i])
			continue
		}
		i++
		writeDatePart(&result, date, format[i])
	}
	state.Push(lua.LString(result.finish()))
	return 1
}

func dateTable(host Host, date time.Time) *lua.LTable {
	host.Allocate(dateBytes)
	table := &lua.LTable{Metatable: lua.LNil}
	for _, field := range []struct {
		name  string
		value int
	}{
		{"year", date.Year()}, {"month", int(date.Month())}, {"day", date.Day()},
		{"hour", date.Hour()}, {"min", date.Minute()}, {"sec", date.Second()},
		{"wday", int(date.Weekday()) + 1}, {"yday", date.YearDay()},
	} {
		table.RawSetString(field.name, integer(field.value))
	}
	table.RawSetString("isdst", lua.LBool(date.IsDST()))
	return table
}

// dateLayouts are the layouts of the conversions of strftime in the locale C.
var dateLayouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02",
	'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'h': "Jan", 'H': "15", 'I': "03", 'j': "002", 'm': "01",
	'M': "04", 'p': "PM", 'P': "pm", 'R': "15:04", 'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05",
	'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
}

// writeDatePart writes one conversion of strftime. As in gopher-lua, an unknown one stays as it is.
func writeDatePart(result *text, date time.Time, conversion byte) {
	result.host.Step(nextSteps)
	layout, ok := dateLayouts[conversion]
	switch {
	case ok:
		result.write(date.Format(layout))
	case conversion == 'w':
		result.write(fmt.Sprint(int(date.Weekday())))
	case conversion == 'U':
		result.write(fmt.Sprintf("%02d", (date.YearDay()+6-int(date.Weekday()))/7))
	case conversion == 'W':
		result.write(fmt.Sprintf("%02d", (date.YearDay()+6-(int(date.Weekday())+6)%7)/7))
	case conversion == '%':
		result.writeByte('%')
	default:
		result.writeByte('%')
		result.writeByte(conversion)
	}
}
