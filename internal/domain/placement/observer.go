package placement

// Step is a scheduling step. It is used as a metric label.
type Step string

// Values of Step, in the order of the steps.
const (
	StepFilter         Step = "Filter"
	StepScore          Step = "Score"
	StepSelect         Step = "Select"
	StepAssignReplicas Step = "AssignReplicas"
)

// ExtensionPoint is a point at which plugins run. It is used as a metric label.
type ExtensionPoint string

// Values of ExtensionPoint.
const (
	ExtensionPointFilter ExtensionPoint = "Filter"
	ExtensionPointScore  ExtensionPoint = "Score"
)

// Observer is notified of the progress of Schedule, so that the caller can measure durations. Each
// function is called at the start of an operation, and returns a function that is called at the end of
// the operation, even if it failed. A nil function is not called.
type Observer struct {
	// Step is called for each step, and again for each affinity group.
	Step func(Step) (done func())
	// ExtensionPoint is called before the first plugin of an extension point runs. done is called after
	// the last one.
	ExtensionPoint func(ExtensionPoint) (done func())
	// Plugin is called before a plugin runs on all remaining clusters.
	Plugin func(point ExtensionPoint, plugin string) (done func())
}

func (o Observer) startStep(step Step) (done func()) {
	if o.Step == nil {
		return noop
	}
	return o.Step(step)
}

func (o Observer) startExtensionPoint(point ExtensionPoint) (done func()) {
	if o.ExtensionPoint == nil {
		return noop
	}
	return o.ExtensionPoint(point)
}

func (o Observer) startPlugin(point ExtensionPoint, plugin string) (done func()) {
	if o.Plugin == nil {
		return noop
	}
	return o.Plugin(point, plugin)
}

func noop() {}
