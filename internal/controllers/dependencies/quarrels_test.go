package dependencies

import "testing"

func TestQuarrelsAreToldOnce(t *testing.T) {
	type look struct {
		message string
		written bool
		told    bool
	}
	for name, looks := range map[string][]look{
		"what was there at the first look is no news":          {{"differ", false, false}, {"differ", false, false}},
		"what we have written is":                              {{"differ", true, true}, {"differ", false, false}, {"differ", true, false}},
		"another pass may see what was written before we tell": {{"differ", false, false}, {"differ", true, true}, {"differ", true, false}},
		"a change is news to whoever sees it first":            {{"", false, false}, {"differ", false, true}, {"differ", true, false}},
		"another difference is news":                           {{"differ", true, true}, {"differ more", false, true}, {"differ more", true, false}},
		"the end is news and so is the next beginning":         {{"differ", true, true}, {"", false, true}, {"differ", false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuarrels()
			for i, look := range looks {
				if told := q.news("uid", look.message, look.written); told != look.told {
					t.Errorf("look %d: told %t", i, told)
				}
			}
		})
	}
}
