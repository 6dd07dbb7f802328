"""What a conflict is: base tasks, simulation, scene facts, plans, premise checker, operators, language, prompts."""
