package admission

import "testing"

func TestParseSchedule(t *testing.T) {
	tests := map[string]struct {
		expression string
		invalid    bool
	}{
		"every five minutes":                       {"*/5 * * * *", false},
		"a name for a schedule":                    {"@daily", false},
		"a schedule in a time zone":                {"TZ=Asia/Shanghai 0 8 * * 1-5", false},
		"the longer prefix":                        {"CRON_TZ=UTC 0 8 * * *", false},
		"empty":                                    {"", true},
		"words":                                    {"at noon", true},
		"seconds are one field too many":           {"0 0 8 * * *", true},
		"an invalid hour":                          {"0 24 * * *", true},
		"a time zone alone":                        {"TZ=UTC", true},
		"a time zone alone with the longer prefix": {"CRON_TZ=", true},
		"tabs as separators":                       {"TZ=UTC\t0\t8\t*\t*\t*", true},
		"an unknown time zone":                     {"TZ=Moon 0 8 * * *", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := DefaultRules().ParseSchedule(test.expression); (err != nil) != test.invalid {
				t.Errorf("%q: error %v, want one: %v", test.expression, err, test.invalid)
			}
		})
	}
}

// Users write schedules and time zones, so no input may cause a panic.
func FuzzParseSchedule(f *testing.F) {
	for _, seed := range []string{"*/5 * * * *", "@every 1h", "TZ=UTC 0 8 * * 1-5", "CRON_TZ=", "1-2/3,4 ? JAN SUN 99999999999", "../etc/passwd"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules := DefaultRules()
		_, _ = rules.ParseSchedule(text), rules.LoadTimeZone(text)
	})
}
