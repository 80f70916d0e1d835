package admission

import (
	"errors"
	"testing"
)

func TestFederatedHPARules(t *testing.T) {
	hpa := func(spec string) string {
		return `{kind: FederatedHPA, metadata: {name: h}, spec: {scaleTargetRef: {kind: Deployment, name: web}, ` + spec + `}}`
	}
	metric := func(metric string) string { return hpa(`maxReplicas: 2, metrics: [` + metric + `]`) }
	up := func(rules string) string { return hpa(`maxReplicas: 2, behavior: {scaleUp: {` + rules + `}}`) }
	const at, rules = "spec.metrics[0].", "spec.behavior.scaleUp."
	runJudgements(t, map[string]judgement{
		"a valid autoscaler":          {new: validFHPA},
		"a name is a subdomain":       {new: `{kind: FederatedHPA, metadata: {name: A}, spec: {scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 1}}`, errors: []string{"FieldValueInvalid metadata.name"}},
		"the target is named":         {new: `{kind: FederatedHPA, metadata: {name: h}, spec: {scaleTargetRef: {kind: "", name: a/b}, maxReplicas: 1}}`, errors: []string{"FieldValueRequired spec.scaleTargetRef.kind", "FieldValueInvalid spec.scaleTargetRef.name"}},
		"there is no scaling to 0":    {new: hpa(`minReplicas: 0, maxReplicas: 0`), errors: []string{"FieldValueInvalid spec.minReplicas", "FieldValueInvalid spec.maxReplicas"}},
		"most is not less than least": {new: hpa(`minReplicas: 3, maxReplicas: 2`), errors: []string{"FieldValueInvalid spec.maxReplicas"}},
		"types of metrics are known":  {new: metric(`{type: External, external: {metric: {name: q}, target: {type: Value, value: "1"}}}`), errors: []string{"FieldValueNotSupported " + at + "type", "FieldValueForbidden " + at + "external"}},
		"a metric has its own source": {
			new:    metric(`{type: Resource, pods: {metric: {name: q}, target: {type: AverageValue, averageValue: "1"}}}`),
			errors: []string{"FieldValueForbidden " + at + "pods", "FieldValueRequired " + at + "resource"},
		},
		"a target has a known type and positive numbers": {
			new:    metric(`{type: Object, object: {describedObject: {kind: K, name: thing}, metric: {name: q}, target: {type: Most, value: "0", averageValue: "-1", averageUtilization: 0}}}`),
			errors: []string{"FieldValueNotSupported " + at + "object.target.type", "FieldValueInvalid " + at + "object.target.value", "FieldValueInvalid " + at + "object.target.averageValue", "FieldValueInvalid " + at + "object.target.averageUtilization"},
		},
		"an object metric has a value": {
			new:    metric(`{type: Object, object: {describedObject: {kind: K, name: thing}, metric: {name: q}, target: {type: Value}}}`),
			errors: []string{"FieldValueRequired " + at + "object.target.averageValue"},
		},
		"a pods metric has an average":       {new: metric(`{type: Pods, pods: {metric: {name: q}, target: {type: Value, value: "1"}}}`), errors: []string{"FieldValueRequired " + at + "pods.target.averageValue"}},
		"a resource metric has one target":   {new: metric(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 1, averageValue: "1"}}}`), errors: []string{"FieldValueRequired " + at + "resource.target.averageUtilization"}},
		"a resource metric has a target":     {new: metric(`{type: Resource, resource: {name: cpu, target: {type: Utilization}}}`), errors: []string{"FieldValueRequired " + at + "resource.target.averageUtilization"}},
		"a container is named like one":      {new: metric(`{type: ContainerResource, containerResource: {container: A, name: cpu, target: {type: Utilization, averageUtilization: 1}}}`), errors: []string{"FieldValueInvalid " + at + "containerResource.container"}},
		"a window is at most an hour":        {new: up(`stabilizationWindowSeconds: 3601, policies: [{type: Pods, value: 1, periodSeconds: 1}]`), errors: []string{"FieldValueInvalid " + rules + "stabilizationWindowSeconds"}},
		"a window is not negative":           {new: up(`stabilizationWindowSeconds: -1, policies: [{type: Pods, value: 1, periodSeconds: 1}]`), errors: []string{"FieldValueInvalid " + rules + "stabilizationWindowSeconds"}},
		"the selection of policies is known": {new: up(`selectPolicy: Any, policies: [{type: Pods, value: 1, periodSeconds: 1}]`), errors: []string{"FieldValueNotSupported " + rules + "selectPolicy"}},
		"there is a policy":                  {new: up(`selectPolicy: Max`), errors: []string{"FieldValueRequired " + rules + "policies"}},
		"a policy has a type, a value and a period": {
			new:    up(`policies: [{type: X, value: 0, periodSeconds: 1801}]`),
			errors: []string{"FieldValueNotSupported " + rules + "policies[0].type", "FieldValueInvalid " + rules + "policies[0].value", "FieldValueInvalid " + rules + "policies[0].periodSeconds"},
		},
	})
	const cpu = `metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]`
	runDefaultings(t, map[string]defaulting{
		"one replica and cpu at 80 %": {
			new:  hpa(`maxReplicas: 2`),
			want: hpa(`minReplicas: 1, maxReplicas: 2, ` + cpu),
		},
		"behavior is completed on both sides": {
			new: hpa(`maxReplicas: 2, behavior: {}`),
			want: hpa(`minReplicas: 1, maxReplicas: 2, ` + cpu + `, behavior: {scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]},
				scaleDown: {selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}`),
		},
		"given parts of behavior stay": {
			new: hpa(`maxReplicas: 2, behavior: {scaleUp: {stabilizationWindowSeconds: 5}, scaleDown: {selectPolicy: Disabled}}`),
			want: hpa(`minReplicas: 1, maxReplicas: 2, ` + cpu + `, behavior: {scaleUp: {stabilizationWindowSeconds: 5, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]},
				scaleDown: {selectPolicy: Disabled, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}`),
		},
	})
}

func TestCronFederatedHPARules(t *testing.T) {
	cron := func(target, rules string) string {
		return `{kind: CronFederatedHPA, metadata: {name: c}, spec: {scaleTargetRef: {` + target + `}, rules: [` + rules + `]}}`
	}
	workload := func(rules string) string { return cron(`apiVersion: apps/v1, kind: Deployment, name: web`, rules) }
	bounds := func(rule string) string {
		return cron(`apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: h`, `{name: a, schedule: x, `+rule+`}`)
	}
	refuse := func(string) error { return errors.New("no") }
	runJudgements(t, map[string]judgement{
		"a valid schedule":      {new: validCron},
		"a name is a subdomain": {new: `{kind: CronFederatedHPA, metadata: {name: A}, spec: {scaleTargetRef: {kind: Deployment, name: web}, rules: []}}`, errors: []string{"FieldValueInvalid metadata.name"}},
		"the target is named":   {new: cron(`kind: Deployment, name: ""`, ``), errors: []string{"FieldValueRequired spec.scaleTargetRef.name"}},
		"of our group there is the FederatedHPA to scale": {
			new:    cron(`apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, name: h`, ``),
			errors: []string{"FieldValueNotSupported spec.scaleTargetRef.kind"},
		},
		"names of rules are unique": {
			new:    workload(`{name: a, schedule: x, targetReplicas: 1}, {name: a, schedule: x, targetReplicas: 1}`),
			errors: []string{"FieldValueDuplicate spec.rules[1].name"},
		},
		"schedules are cron expressions":            {new: validCron, rules: Rules{ParseSchedule: refuse}, errors: []string{"FieldValueInvalid spec.rules[0].schedule"}},
		"time zones exist":                          {new: workload(`{name: a, schedule: x, timeZone: X, targetReplicas: 1}`), rules: Rules{LoadTimeZone: refuse}, errors: []string{"FieldValueInvalid spec.rules[0].timeZone"}},
		"no time zone is one":                       {new: validCron, rules: Rules{LoadTimeZone: refuse}},
		"a workload needs replicas, no bounds":      {new: workload(`{name: a, schedule: x, targetMinReplicas: 1, targetMaxReplicas: 1}`), errors: []string{"FieldValueRequired spec.rules[0].targetReplicas"}, warnings: []string{"spec.rules[0].targetMinReplicas", "spec.rules[0].targetMaxReplicas"}},
		"replicas are not negative":                 {new: workload(`{name: a, schedule: x, targetReplicas: -1}`), errors: []string{"FieldValueInvalid spec.rules[0].targetReplicas"}},
		"a FederatedHPA needs a bound, no replicas": {new: bounds(`targetReplicas: 1`), errors: []string{"FieldValueRequired spec.rules[0].targetMinReplicas"}, warnings: []string{"spec.rules[0].targetReplicas"}},
		"one bound is enough":                       {new: bounds(`targetMaxReplicas: 1`)},
		"bounds are positive":                       {new: bounds(`targetMinReplicas: 0, targetMaxReplicas: 0`), errors: []string{"FieldValueInvalid spec.rules[0].targetMinReplicas", "FieldValueInvalid spec.rules[0].targetMaxReplicas"}},
		"bounds are in order":                       {new: bounds(`targetMinReplicas: 2, targetMaxReplicas: 1`), errors: []string{"FieldValueInvalid spec.rules[0].targetMinReplicas"}},
	})
}
