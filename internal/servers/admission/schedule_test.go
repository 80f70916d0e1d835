package admission

import "testing"

func TestSchedulesAreCronExpressions(t *testing.T) {
	tests := map[string]struct {
		expression string
		refused    bool
	}{
		"every five minutes":                {"*/5 * * * *", false},
		"a name for a schedule":             {"@daily", false},
		"a schedule in a time zone":         {"TZ=Asia/Shanghai 0 8 * * 1-5", false},
		"the same under its longer name":    {"CRON_TZ=UTC 0 8 * * *", false},
		"nothing":                           {"", true},
		"words":                             {"at noon", true},
		"seconds are one field too many":    {"0 0 8 * * *", true},
		"an hour that no day has":           {"0 24 * * *", true},
		"a time zone alone":                 {"TZ=UTC", true},
		"a time zone alone, the longer way": {"CRON_TZ=", true},
		"a tab is no blank":                 {"TZ=UTC\t0\t8\t*\t*\t*", true},
		"a time zone that nobody has":       {"TZ=Moon 0 8 * * *", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := StandardRules().ParseSchedule(test.expression); (err != nil) != test.refused {
				t.Errorf("%q: error %v, want one: %v", test.expression, err, test.refused)
			}
		})
	}
}

// Users write both, so nothing that is in them may stop who judges.
func FuzzSchedulesAndTimeZones(f *testing.F) {
	for _, seed := range []string{"*/5 * * * *", "@every 1h", "TZ=UTC 0 8 * * 1-5", "CRON_TZ=", "1-2/3,4 ? JAN SUN 99999999999", "../etc/passwd"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules := StandardRules()
		_, _ = rules.ParseSchedule(text), rules.LoadTimeZone(text)
	})
}
