from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    native_urls = "jobs.urls"

    def ready(self) -> None:
        from authz.services import owners
        from catalogs.services import admission, cascade, creation_hooks
        from jobs import tasks
        from jobs.services import departures, system, templates
        from metalake import events
        from metalake.kinds import Kind

        tasks.register()
        admission.admit_with("alter_job_template", templates.admit)
        creation_hooks.check_home_with(system.check_home)
        cascade.before_removal(Kind.JOB_TEMPLATE, departures.end_runs_below)
        events.subscribe_in_transaction(departures.follow)
        owners.hand_over_with(departures.hand_over_schedules)
